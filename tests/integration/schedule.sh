#!/usr/bin/env bash
# schedule.sh QUALIFY TRAINER SOURCE-FOLDER
#
# A gate that is due every minute, on this machine and without Slurm: the daemon begins it, status shows what is next,
# and the gate stays armed until it is disarmed.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../support/project.sh"
qualify=$1
folder=$(mktemp -d)
daemon=
trap '[[ -z $daemon ]] || kill "$daemon" 2>/dev/null || true' EXIT
failed() {
  echo "FAILED: $1 (folder: $folder)" >&2
  cat "$folder"/log "$folder"/out "$folder"/err >&2
  exit 1
}
write_workload </dev/null
isolate
export QUALIFY_MODULES=$folder
commit_code
cd "$folder"
touch log out err
write_bundle work
write_gates 'nightly schedule: "* * * * *", time_zone: Europe/Zurich' by-hand
"$qualify" init >out
"$qualify" bundle seal --quiet bundle.yaml >out
code=0
"$qualify" arm by-hand --bundle work >out 2>err || code=$?
((code == 2)) || failed "a gate without schedule and reservation was armed: $code"
grep -q 'has no schedule' err || failed "it is not said why"
"$qualify" arm nightly --bundle work >out 2>err || failed "arming ended with $?"
grep -q "next .* CES\?T" out || failed "arming does not say when it is due"
"$qualify" status >out
grep -q 'nightly *armed.*this machine; next' out || failed "status does not show the next time"
"$qualify" daemon 2>log &
daemon=$!
for ((tries = 0; tries < 500; ++tries)); do
  grep -q 'it reached its verdict: pass; it stays armed' log && break
  kill -0 "$daemon" || failed "the daemon is gone"
  sleep 0.2
done
grep -q 'it stays armed' log || failed "it was not run"
grep -q 'without Slurm' log || failed "the daemon does not say that Slurm is absent"
"$qualify" status --json >out
grep -q '"schedule": "\* \* \* \* \*"' out || failed "status has no schedule"
"$qualify" history >out
grep -q 'gate nightly due since' out || failed "history does not have it"
kill -TERM "$daemon"
wait "$daemon" || failed "SIGTERM ended the daemon with $?"
daemon=
"$qualify" disarm nightly >out
"$qualify" status >out
grep -q 'armed' out && failed "it is armed still"
cd /
chmod -R u+w "$folder" && rm -rf "$folder"
echo "schedule: all as it must be"
