#!/usr/bin/env bash
# interrupt.sh QUALIFY TRAINER SOURCE-FOLDER
#
# Ctrl-C leaves no process behind, and the same command goes on; SIGTERM leaves the job alone, and the
# same command re-attaches to it; after kill -9 resume does, without the gate's file; cancel ends the
# job and gives the rest up, whoever runs it.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../support/project.sh"
qualify=$1
folder=$(mktemp -d)
failed() {
  echo "FAILED: $1 (folder: $folder)" >&2
  cat "$folder"/out* "$folder"/err* >&2
  exit 1
}
write_held_workload <<'END' # what it forks away must not be left either
  setsid sleep 1000 &
  beside=$!
END
isolate
commit_code
cd "$folder"
write_bundle slow "$(held_environment)"
write_gates first second third fourth
mkfifo tell leave
"$qualify" init >out0
"$qualify" bundle seal --quiet bundle.yaml >>out0
nobody_left() {
  local process
  for process in /proc/[0-9]*; do
    [[ $(readlink "$process/cwd" 2>/dev/null) != "$folder"/.qualify/* ]] ||
      failed "process ${process#/proc/} is left: $(tr '\0' ' ' <"$process/cmdline")"
  done
}

"$qualify" run first --bundle slow >out1 2>err1 &
running=$!
read -r workload <tell
code=0
"$qualify" run first --bundle slow >out1b 2>err1b || code=$?
((code == 4)) || failed "a second operator's command on the same gate ended with $code"
grep -q 'another qualify is running' err1b || failed "the second operator is not told why"
kill -INT "$running"
code=0
wait "$running" || code=$?
((code == 130)) || failed "Ctrl-C ended with $code"
nobody_left
rm tell # from here on the workload ends by itself
code=0
"$qualify" run first --bundle slow >out2 2>err2 || code=$?
((code == 0)) || failed "going on after Ctrl-C ended with $code"
grep -q '^first-1: pass' out2 || failed "it was not gone on with"
(($(wc -l <starts) == 3)) || failed "three starts were due: the cancelled one and two runs"
echo "Ctrl-C: workload $workload gone, and gone on to a pass"

mkfifo tell
: >starts
"$qualify" run second --bundle slow >out3 2>err3 &
running=$!
read -r workload <tell
rm tell
kill -TERM "$running"
code=0
wait "$running" || code=$?
((code == 130)) || failed "SIGTERM ended with $code"
kill -0 "$workload" || failed "SIGTERM took the job along"
"$qualify" run second --bundle slow >out4 2>err4 &
running=$!
echo go >leave
code=0
wait "$running" || code=$?
((code == 0)) || failed "re-attaching ended with $code"
(($(wc -l <starts) == 2)) || failed "the detached run was started twice"
nobody_left
echo "SIGTERM: workload $workload lived on and counts as run a"
mkfifo tell
: >starts
"$qualify" run third --bundle slow >out5 2>err5 &
running=$!
read -r workload <tell
rm tell
kill -KILL "$running"
wait "$running" || true
kill -0 "$workload" || failed "kill -9 of qualify took the job along"
mv qualification.yaml declared.yaml # resume goes by what was recorded
"$qualify" resume third >out6 2>err6 &
running=$!
echo go >leave
code=0
wait "$running" || code=$?
((code == 0)) || failed "resume ended with $code"
grep -q '^third-1: pass' out6 || failed "resume did not go on with third-1"
(($(wc -l <starts) == 2)) || failed "the run was started twice"
"$qualify" resume >out7 || failed "resume of nothing is no error"
grep -q 'Nothing is unfinished' out7 || failed "something is unfinished"
mv declared.yaml qualification.yaml
echo "kill -9: workload $workload lived on, and resume went on by the recorded criteria"

mkfifo tell
"$qualify" run fourth --bundle slow >out8 2>err8 &
running=$!
read -r workload <tell
rm tell
"$qualify" cancel fourth --why "wrong data" >out9 2>err9 || failed "cancel ended with $?"
code=0
wait "$running" || code=$?
((code == 130)) || failed "the run that was cancelled from outside ended with $code"
nobody_left
grep -q '^fourth-1: given up; 1 live job was cancelled' out9 || failed "cancel says something else"
"$qualify" status fourth >out10
grep -q 'given up by .*: wrong data' out10 || failed "status does not say who gave it up"
"$qualify" history fourth >out11
grep -q 'given up by' out11 || failed "history does not have it"
"$qualify" run fourth --bundle slow >out12 2>err12 || failed "the gate cannot be run again"
grep -q '^fourth-2: pass' out12 || failed "it did not start anew"
echo "cancel: workload $workload gone, given up on the record, and started anew"
cd /
chmod -R u+w "$folder" && rm -rf "$folder"
echo "interrupt: all as it must be"
