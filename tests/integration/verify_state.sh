#!/usr/bin/env bash
# verify_state.sh QUALIFY
#
# A whole state is found whole, and judged again to the same verdicts; then one attack after the
# other is made on a copy of it, and `qualify verify` names what was done and what rests on it.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../support/project.sh"
qualify=$1
folder=$(mktemp -d)
write_workload <<'END'
# one metric, equal in every run
END
isolate
commit_code
cd "$folder"
write_bundle whole
write_gates one 'two steps: 1'
"$qualify" init >/dev/null
"$qualify" bundle seal --quiet bundle.yaml >/dev/null
"$qualify" run one --bundle whole >out 2>err || failed "gate one"
"$qualify" log checkpoint >early.txt
"$qualify" run two --bundle whole >out 2>err || failed "gate two"
"$qualify" log checkpoint >late.txt

expect 0 '2 verdicts, all the same' verify --recompute --checkpoint early.txt
expect 0 'every signature' log verify --checkpoint early.txt --checkpoint late.txt
expect 0 '"ok": true' verify --json
first=$("$qualify" cert list --json | grep -m1 '"id"' | cut -d'"' -f4)
expect 0 '"inclusionProof"' log prove "${first:0:12}"
expect 0 '"consistency"' log prove --since early.txt
expect 0 '"tlogEntries"' cert show "${first:0:12}" --json
# Read-only, and with nobody's help: the state as a reader without write access has it.
chmod -R a-w .qualify
expect 0 '2 verdicts, all the same' verify --recompute
chmod -R u+w .qualify

cp -a .qualify kept
attack() { # NAME TEXT COMMAND…: what verify must say once the command was run on a fresh copy
  local name=$1 text=$2
  shift 2
  chmod -R u+w .qualify
  rm -rf .qualify
  cp -a kept .qualify
  "$@" >out 2>err || failed "the attack '$name' itself did not work"
  expect 5 "$text" verify --recompute --checkpoint late.txt
  echo "$name: $(sed -n 1p err | cut -c1-150)"
}
# Somebody who owns the file can drop the triggers: that is what signatures and the log are for.
sql() {
  {
    sqlite3 .qualify/qualify.db "SELECT 'DROP TRIGGER ' || name || ';' FROM sqlite_master WHERE type = 'trigger'"
    echo "$1"
  } | sqlite3 .qualify/qualify.db
}
evidence() { # one byte of the first blob that holds a text
  local blob
  blob=$(grep -rl "$1" .qualify/evidence/blobs | sort | head -n 1)
  chmod u+w "$blob"
  printf 'X' | dd of="$blob" bs=1 seek=20 conv=notrunc status=none
}
bundle_bit() {
  local blob
  blob=$(grep -rl 'one metric, equal in every run' .qualify/store/blobs | head -n 1)
  chmod u+w "$blob"
  printf 'X' | dd of="$blob" bs=1 seek=600 conv=notrunc status=none
}
roll_back() { # the whole file as it was before gate two
  sql "DELETE FROM record WHERE gate = 'two'; DELETE FROM tree_node; DELETE FROM checkpoint;
       DELETE FROM event WHERE qualification = 'two-1'; DELETE FROM qualification WHERE gate = 'two'"
}

attack 'a payload edited' 'its content is not what its id names' sql \
  "UPDATE record SET payload = replace(payload, 'repeatability', 'repeatabilitx') WHERE kind = 'certificate' AND gate = 'one'"
attack 'two certificates exchanged' 'tree nodes are not those of the records' sql \
  "UPDATE record SET position = 999 WHERE kind = 'certificate' AND gate = 'one';
   UPDATE record SET position = 1 WHERE kind = 'certificate' AND gate = 'two';
   UPDATE record SET position = 3 WHERE position = 999"
attack 'the end of the log cut off' 'is not in the ledger' sql \
  "DELETE FROM record WHERE kind = 'certificate' AND gate = 'two'"
attack 'the log put back' 'checkpoint' roll_back
attack 'evidence edited' 'affects certificate' evidence '"lm loss": "0x'
attack 'the bundle edited' 'affects certificate' bundle_bit
attack 'a verdict edited in the journal' 'judged again from its evidence it is pass' sql \
  "UPDATE event SET payload = replace(payload, '\"verdict\":\"pass\"', '\"verdict\":\"fail\"') WHERE kind = 'verdict.reached' AND qualification = 'one-1'"
attack 'evidence of one gate given to the other' 'the evidence is another' sql \
  "UPDATE event SET payload = (SELECT payload FROM event WHERE kind = 'evidence.collected' AND qualification = 'two-1' AND run = 'a')
   WHERE kind = 'evidence.collected' AND qualification = 'one-1' AND run = 'a'"
attack 'a public key exchanged' 'key' sql \
  "UPDATE public_key SET pem = replace(pem, 'A', 'B')"

cd /
chmod -R u+w "$folder"
rm -rf "$folder"
echo "verify_state: all as it must be"
