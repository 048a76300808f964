#!/usr/bin/env bash
# slurm_daemon.sh QUALIFY TRAINER SOURCE-FOLDER
#
# A daemon on a real Slurm: an armed gate starts when its reservation does, within two seconds, and
# nothing before; a second daemon is refused; SIGTERM ends it and leaves the job; the next one goes
# on to the verdict.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../support/project.sh"
qualify=$1 source_folder=$3
folder=$(mktemp -d)
cluster=$source_folder/tests/support/slurm-cluster
daemon=
trap '[[ -z $daemon ]] || kill "$daemon" 2>/dev/null; "$cluster" down --dir "$folder/cluster" >/dev/null 2>&1' EXIT
failed() {
  echo "FAILED: $1 (folder: $folder)" >&2
  tail -n 30 "$folder"/log* >&2
  exit 1
}
until_said() { # TEXT FILE: the daemon's log has it; two minutes at most
  local tries
  for ((tries = 0; tries < 600; ++tries)); do
    grep -q "$1" "$2" && return
    kill -0 "$daemon" 2>/dev/null || failed "the daemon is gone; waited for: $1"
    sleep 0.2
  done
  failed "the daemon does not say: $1"
}
"$cluster" up --nodes 1 --gpus 8 --dir "$folder/cluster"
export SLURM_CONF=$folder/cluster/slurm.conf
nodes=$(sinfo -h -N -o %N | head -n 1)

# It says that it runs, and ends when it is let go.
write_workload <<'END'
echo started >>"$STARTS"
until [ -e "$LEAVE" ]; do sleep 0.2; done
END
isolate
commit_code
cd "$folder"
write_bundle armed "{LEAVE: $folder/leave, STARTS: $folder/starts}"
write_gates night
"$qualify" init >/dev/null
"$qualify" bundle seal --quiet bundle.yaml >/dev/null
scontrol create reservation reservationname=saturday users=root starttime=now+20seconds \
  duration=60 "nodes=$nodes" >/dev/null

code=0
"$qualify" arm night --bundle armed --reservation saturday 2>err || code=$?
((code == 3)) || failed "arming without a grant ended with $code"
"$qualify" reservation grant saturday --gate night >/dev/null
"$qualify" arm night --bundle armed --reservation saturday >/dev/null
"$qualify" daemon 2>log1 &
daemon=$!
until_said '^ready' log1
until_said 'waits for: its start' log1
"$qualify" status >out
grep -q 'armed.*reservation saturday' out || failed "status does not show the arming: $(cat out)"
code=0
"$qualify" daemon 2>err || code=$?
((code != 0)) || failed "a second daemon was let in"
grep -q 'another daemon' err || failed "the second daemon is not told why"
[[ -z $(squeue -h -t all) ]] || failed "something was submitted before the reservation's start"

until_said 'launching on reservation saturday' log1
tries=0
until [[ -e starts ]]; do
  ((++tries < 300)) || failed "the run does not start"
  sleep 0.2
done
start=$(date -d "$(scontrol show reservation saturday | sed -n 's/.*StartTime=\([^ ]*\).*/\1/p')" +%s)
submitted=$(date -d "$(squeue -h -t all -o %V)" +%s)
((submitted >= start)) || failed "submitted $((start - submitted)) s before the start"
((submitted - start <= 2)) || failed "submitted $((submitted - start)) s after the start"

kill -TERM "$daemon"
wait "$daemon" || failed "SIGTERM ended the daemon with $?"
[[ $(squeue -h -t running | wc -l) == 1 ]] || failed "SIGTERM took the job along"
touch leave
"$qualify" daemon 2>log2 &
daemon=$!
until_said 'is disarmed: it reached its verdict: pass' log2
kill -TERM "$daemon"
wait "$daemon" || failed "the second daemon ended with $?"
daemon=
(($(wc -l <starts) == 2)) || failed "$(wc -l <starts) starts; two runs were due"
[[ $(squeue -h -t all | wc -l) == 2 ]] || failed "not exactly two jobs"
"$qualify" status >out
grep -q 'night.*pass' out || failed "status does not show the verdict: $(cat out)"
"$qualify" history | grep -q 'gate night armed on reservation saturday' || failed "history lacks it"
cd /
chmod -R u+w "$folder" && rm -rf "$folder/code"
echo "slurm_daemon: submitted $((submitted - start)) s after the start, re-attached, and passed"
