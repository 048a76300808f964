#!/usr/bin/env bash
# signoff.sh QUALIFY
#
# People close what the numbers leave open, sign a release off and export it; the export verifies with no
# state. Then everything that somebody might do to it, or to the state, is done to a copy, and is found.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../support/project.sh"
qualify=$1
folder=$(mktemp -d)
isolate
mkdir "$folder/code"
# Equal values in every run; 3 % more time a step in arm det, and a little noise.
cat >"$folder/code/work" <<'END'
#!/bin/sh
awk -v factor="$FACTOR" -v seed="$(date +%N)" 'BEGIN {
  srand(seed)
  for (i = 1; i <= 30; ++i)
    printf "{\"iteration\": %d, \"lm loss\": \"0x41293069\", \"iteration-time\": %.9f}\n", i, factor * (1 + 0.0004 * rand())
}' >m.jsonl
END
chmod +x "$folder/code/work"
commit_code
cd "$folder"
write_bundle toy '{FACTOR: "1.00"}'
sed -i 's/^arms:.*/arms: {det: {environment: {FACTOR: "1.03"}}, fast: {}}/' bundle.yaml
declare_gates() { # ROLES: beside what is always there
  cat >qualification.yaml <<END
schema_version: 1
gates:
  one: {kind: repeatability, arm: det, metrics: [lm loss], run_limit: 5m}
  cost: {kind: performance, arms: {deterministic: det, nondeterministic: fast}, run_limit: 5m}
  two: {kind: repeatability, arm: fast, metrics: [lm loss], run_limit: 5m}
people:
  ana: {keys: [{file: keys/ana.pem.pub}]}
  ben: {keys: [{file: keys/ben.pem.pub}]}
  eve: {keys: [{file: keys/eve.pem.pub}]}
  old: {keys: [{file: keys/old.pem.pub, until: 2020-01-01T00:00:00Z}]}
$1
releases:
  december: {description: What ships, gates: [one, cost]}
  january: {gates: [one]}
END
}
roles='roles:
  decide: {people: [ana, ben, old]}
  waive: {people: [ana]}
  revoke: {people: [ana]}
  sign: {people: [ana, ben, eve], needed: 2}'
declare_gates "$roles"
mkdir keys
for person in ana ben eve old mallory; do "$qualify" key create "keys/$person.pem" >/dev/null; done
echo 'correct horse' >phrase
chmod 600 phrase
"$qualify" key create --passphrase-file phrase keys/locked.pem >/dev/null
"$qualify" init >/dev/null
"$qualify" bundle seal --quiet bundle.yaml >/dev/null

# Before anything: every declared gate is there.
expect 0 'has not been run' status
expect 3 '0 of 2 gates are closed' signoff december
expect 3 '0 of 2 gates are closed' signoff december --key keys/ana.pem
"$qualify" run one --bundle toy >out 2>err || failed "gate one"
expect 3 '' run cost --bundle toy
expect 0 'needs-decision' status
expect 3 'cost is needs-decision' signoff december

# Who may not say it, or cannot prove who they are.
decide=(decide cost --accept --reason 'worth it' --key)
expect 3 'eve does not have the role decide' "${decide[@]}" keys/eve.pem
expect 3 "is nobody's" "${decide[@]}" keys/mallory.pem
expect 3 "was not old's at" "${decide[@]}" keys/old.pem
chmod 644 keys/ana.pem
expect 3 'others may read or write this private key' "${decide[@]}" keys/ana.pem
chmod 600 keys/ana.pem
got=0
setsid -w "$qualify" "${decide[@]}" keys/locked.pem </dev/null >out 2>err || got=$?
((got == 2)) || failed "an encrypted key without terminal ended with $got"
grep -q 'there is no terminal to ask on' err || failed "an encrypted key without terminal"
chmod 644 phrase
expect 2 'others may read or write this passphrase' "${decide[@]}" keys/locked.pem --passphrase-file phrase
chmod 600 phrase
expect 3 "is nobody's" "${decide[@]}" keys/locked.pem --passphrase-file phrase
expect 3 'only what needs a decision' decide one --accept --reason no --key keys/ana.pem
expect 2 'say one of' decide cost --accept --reject --reason both --key keys/ana.pem
expect 3 'ben does not have the role waive' waive one --until 1d --reason no --key keys/ben.pem
"$qualify" status --json >out
grep -q '"needs-decision"' out || failed "somebody who may not decide was heard"

# On a terminal the passphrase is asked for, and never shown.
declare_gates "${roles/decide: \{people: \[/decide: \{people: \[key, }"
sed -i 's/^  ben: {/  key: {keys: [{file: keys\/locked.pem.pub}]}\n&/' qualification.yaml
cp -a qualification.yaml with-key.yaml
rm -f out
{
  until grep -q 'Passphrase for' out 2>/dev/null; do sleep 0.05; done
  echo 'correct horse'
} | script -qfec "$qualify decide cost --reject --reason hm --key keys/locked.pem" out >/dev/null 2>err ||
  failed "a passphrase on a terminal"
grep -q 'Passphrase for' out || failed "nobody was asked"
! grep -q 'horse' out || failed "the passphrase was shown"
expect 0 'rejected by key' status cost
declare_gates "$roles"
expect 0 'needs-decision' status cost # whoever has no role any more is not heard

# What a person writes reaches no terminal as a command.
expect 0 'by decision: accepted by ana' decide cost --accept --reason $'red \e[31m\xc2\x9b1m' --key keys/ana.pem
expect 0 'pass' status cost
! grep -q $'\e' out || failed "an escape code in status"
expect 0 'pass' status cost --json
! LC_ALL=C grep -q $'[\e\x9b]' out || failed "an escape code in status --json"

# Two of three, nobody twice.
expect 0 '1 of 2 signatures: ana' signoff december --key keys/ana.pem
expect 3 'ana has signed exactly this already' signoff december --key keys/ana.pem
expect 3 "is nobody's" signoff december --key keys/mallory.pem
expect 3 'only what is signed off can be exported' signoff december --export too-early
expect 0 'signed-off' signoff december --key keys/eve.pem
expect 0 'signed-off' status
expect 0 '"signed-off"' signoff december --json
expect 0 'exported to' signoff december --export export
expect 2 'something is there already' signoff december --export export
! grep -q $'\e' export/report.txt || failed "an escape code in the report"
"$qualify" signoff january --key keys/ben.pem >out 2>err || failed "another release"

# On a machine that has nothing but the folder, and one that has its own copy of who may sign.
mkdir elsewhere
cp -a export elsewhere/release
cp -a qualification.yaml keys elsewhere
rm -f elsewhere/keys/*.pem
cd elsewhere
expect 0 'signed off' verify release
expect 0 'by ana, eve' verify release
expect 0 'compare them with what you know' verify release
# A folder can bring a log and a state of its own: only with the log's key it is anchored.
expect 0 '"anchored": false' verify release --file qualification.yaml --json
expect 0 '"anchored": true' verify release --file qualification.yaml --log-key release/log.vkey --json
"$qualify" verify release --log-key release/log.vkey --checkpoint release/checkpoint >/dev/null
cd ..
cp -a export kept-export

attack() { # NAME TEXT COMMAND…: what verify must say of the folder once the command was run on it
  local name=$1 text=$2
  shift 2
  rm -rf export
  cp -a kept-export export
  (cd export && "$@") >out 2>err || failed "the attack '$name' itself did not work"
  expect 5 "$text" verify export
  echo "$name: $(sed -n 1p err | cut -c1-150)"
}
record() { # of a kind, and the first of it
  local file
  for file in records/*; do
    if payload "$file" | grep -q "\"kind\":\"$1\""; then
      echo "$file"
      return
    fi
  done
}
payload() { sed -n 's/.*"payload": "\(.*\)".*/\1/p' "$1" | base64 -d; }
# shellcheck disable=SC2317 # called by name
swap() { # two records, each under the other's name
  local a b
  a=$(record certificate)
  b=$(record decision)
  mv "$a" x
  mv "$b" "$a"
  mv x "$b"
}
# shellcheck disable=SC2317
drop() { rm "$(record "$1")"; }
# shellcheck disable=SC2317
edit_record() { sed -i "$2" "$(record "$1")"; }
# shellcheck disable=SC2317
foreign() { # an approval of another release, in the place of one of this
  local own id
  own=$(record approval)
  id=$(cd .. && sqlite3 .qualify/qualify.db "SELECT id FROM record WHERE kind = 'approval' AND gate = 'january'")
  (cd .. && "$qualify" cert show "$id" --json) >"$own"
}
# shellcheck disable=SC2317
foreign_beside() {
  local id
  id=$(cd .. && sqlite3 .qualify/qualify.db "SELECT id FROM record WHERE kind = 'approval' AND gate = 'january'")
  (cd .. && "$qualify" cert show "$id" --json) >"records/$id.sigstore.json"
}
attack 'the policy edited' 'its content is not what was signed' sed -i 's/needed: 2/needed: 1/' qualification.yaml
attack 'a gate taken out of the release' "its gates are not those of the release" sed -i 's/gates: \[one, cost\]/gates: [one]/' qualification.yaml
attack 'a key exchanged' 'keys/eve.pem.pub: its content is not what was signed' cp ../keys/mallory.pem.pub keys/eve.pem.pub
attack 'two records exchanged' 'is not the record that its name says' swap
attack 'a certificate left out' 'is cited and missing' drop certificate
attack 'a decision left out' 'is cited and missing' drop decision
attack 'an approval left out' '1 of 2 people with the role sign' drop approval
attack 'an approval of another release in the place of one' 'is not the record that its name says' foreign
attack 'an approval of another release beside the others' 'the sign-off does not cite it' foreign_beside
attack 'another payload type' "a payload of type 'text/plain'" edit_record certificate 's#application/vnd.in-toto+json#text/plain#'
attack 'another spelling of base 64' 'base 64' edit_record certificate 's/"payload": "\(.*\)"/"payload": "\1=="/'
attack 'a checkpoint edited' "the checkpoint's signature is wrong" sed -i 's/^log-/lag-/' checkpoint
attack 'a file that nobody signed' 'nothing that was signed names it' touch records/read-me-first
attack 'the report edited' 'it does not say what was signed' sed -i 's/december/november/' report.txt
attack 'a link out of the folder' 'is a symbolic link' ln -sf /etc/hostname report.txt
attack 'no sign-off' 'signoff.sigstore.json' rm signoff.sigstore.json
rm -rf export
cp -a kept-export export

# A whole folder of somebody else's making holds together by itself: only what one knows from elsewhere
# shows it.
cp -a .qualify other-state
cp -a qualification.yaml own.yaml
sed -i 's#keys/eve.pem.pub#keys/mallory.pem.pub#' qualification.yaml
"$qualify" --state other-state signoff january --key keys/mallory.pem >out 2>err || failed "a stranger's own release"
"$qualify" --state other-state signoff january --key keys/ana.pem >out 2>err || failed "a stranger's own release"
"$qualify" --state other-state signoff january --export forged >out 2>err || failed "a stranger's own export"
cp -a own.yaml qualification.yaml
expect 0 'release january' verify forged
expect 5 'people, keys or roles are not those of' verify forged --file qualification.yaml
rm -rf other-state

# The state knows all of it too.
expect 0 'signed by people' verify --recompute --file with-key.yaml
expect 5 "is nobody's" verify # a key that was declared once stays declared
sed -i 's/decide: {people: \[ana, ben, old\]}/decide: {people: [ben]}/' qualification.yaml
expect 5 'ana does not have the role decide' verify
expect 0 'ana does not have the role decide' status cost
cp -a own.yaml qualification.yaml

# What was revoked takes along all that rests on it; what was exported before says what held then.
first=$("$qualify" cert list --gate one --json | grep -m1 '"id"' | cut -d'"' -f4)
expect 3 'ben does not have the role revoke' revoke "${first:0:12}" --reason no --key keys/ben.pem
expect 0 'gate one, release december' revoke "${first:0:12}" --reason 'the node was broken' --key keys/ana.pem
expect 3 'it is revoked already' revoke "${first:0:12}" --reason again --key keys/ana.pem
expect 0 'was revoked by ana' status one
expect 3 'was revoked by ana' signoff december
expect 3 'only what is signed off can be exported' signoff december --export late
expect 0 'signed off' verify export
expect 0 'signed by people' verify --file with-key.yaml

# Another version of a gate is another gate.
sed -i 's/one: {kind: repeatability, arm: det,/& runs: 3,/' qualification.yaml
expect 0 'its policy was changed after one-1' status one

# Waived, for as long as was said.
cp -a own.yaml qualification.yaml
expect 0 'waiver' waive one --until 14d --reason 'the node is being repaired' --key keys/ana.pem
expect 0 'waived by ana until' status one
expect 2 'it has ended already' waive one --until 2020-01-01T00:00:00Z --reason late --key keys/ana.pem

cd /
chmod -R u+w "$folder"
rm -rf "$folder"
echo "signoff: all as it must be"
