#!/usr/bin/env bash
# rebuild.sh QUALIFY TRAINER SOURCE-FOLDER
#
# A database that is damaged, or gone: commands say so and what to do, `doctor --rebuild` brings it back, and
# status, history, cert verify and resume work as if nothing had been. A migration says that it was one.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../support/project.sh"
qualify=$1 source_folder=$3
folder=$(mktemp -d)
workload=
trap '[[ -z $workload ]] || kill "$workload" 2>/dev/null || true' EXIT
expect() { # CODE ARGUMENTS…
  local wanted=$1 got=0
  shift
  "$qualify" "$@" >out 2>err || got=$?
  ((got == wanted)) || failed "'qualify $*' ended with $got, not $wanted"
}
write_held_workload </dev/null
isolate
commit_code
cd "$folder"
write_bundle work "$(held_environment)"
write_gates first second
expect 0 init
expect 0 bundle seal --quiet bundle.yaml
expect 0 run first --bundle work
certificate=$(sed -n 's/^ *certificate \([0-9a-f]*\)$/\1/p' out)
# A second gate is left in the middle: its job lives, nobody watches.
mkfifo tell leave
"$qualify" run second --bundle work >out 2>err &
running=$!
read -r workload <tell
rm tell
kill -KILL "$running"
wait "$running" || true
kill -0 "$workload" || failed "kill -9 of qualify took the job along"
"$qualify" history >told.before
TZ=Pacific/Auckland "$qualify" history >told.elsewhere
cmp told.before told.elsewhere || failed "another time zone tells another history"

state=.qualify
rm "$state"/qualify.db "$state"/qualify.db-wal "$state"/qualify.db-shm
for command in status history "cert verify $certificate" resume "run first --bundle work" init; do
  # shellcheck disable=SC2086 # words of one command
  expect 5 $command
  grep -q 'qualify doctor --rebuild' err || failed "'$command' does not say what to do"
done
expect 5 doctor
expect 0 doctor --rebuild
grep -q 'Nothing was lost' out || failed "something was lost"
expect 0 doctor
expect 0 status
grep -q 'first *pass' out || failed "status lacks the verdict"
grep -q 'second *running' out || failed "status lacks the live run"
"$qualify" history | grep -v 'database rebuilt' >told.after
cmp told.before told.after || failed "history is another"
expect 0 cert verify "$certificate"

# And once more with a file that is there and is damaged: in its header, and in a row that SQLite takes for whole.
for place in 30 "$(grep -abo '"nonce":"q' "$state/qualify.db" | head -n 1 | cut -d: -f1)"; do
  printf '\377\377\377\377' | dd of="$state/qualify.db" bs=1 seek="$place" conv=notrunc status=none
  got=0
  "$qualify" doctor >out 2>err || got=$?
  ((got == 5)) || failed "doctor does not see the damage at $place: $got"
  expect 0 doctor --rebuild
  [[ -e $state/qualify.db.damaged-1 ]] || failed "the damaged file is gone"
done
"$qualify" resume second >out 2>err &
running=$!
echo go >leave
code=0
wait "$running" || code=$?
((code == 0)) || failed "resume ended with $code"
grep -q '^second-1: pass' out || failed "resume did not go on with second-1"
(($(wc -l <starts) == 4)) || failed "$(wc -l <starts) starts; two gates of two runs were due"
expect 0 doctor --rebuild
grep -q 'nothing was touched' out || failed "a sound database was rebuilt"

# A database of an older qualify.
expect 0 --state older init
rm older/transcript.jsonl older/qualify.db*
cp "$source_folder/tests/data/databases/schema-2.db" older/qualify.db
chmod u+w older/qualify.db
expect 2 --state older history
grep -q 'older qualify' err || failed "a reader does not say that the schema is older"
expect 0 --state older cancel nothing
grep -q 'as it was before: qualify.db.before-0003' err || failed "the migration is not said"
[[ -e older/qualify.db.before-0003 ]] || failed "there is no copy from before the migration"
expect 0 --state older cancel nothing
[[ ! -s err ]] || failed "a database that is up to date is spoken of"
cd /
chmod -R u+w "$folder" && rm -rf "$folder"
echo "rebuild: all as it must be"
