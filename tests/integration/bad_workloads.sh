#!/usr/bin/env bash
# bad_workloads.sh QUALIFY TRAINER SOURCE-FOLDER
#
# Workloads that go wrong, each on this machine: the verdict says how, no certificate is issued, the
# logs are kept and their path is printed, and nothing is left running.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../support/project.sh"
qualify=$1 source_folder=$3
log_size=${QUALIFY_LOG_SIZE:-800M} # of the loud workload; 10G shows the same in minutes
folder=$(mktemp -d)
mkdir "$folder/code"
cp "$(find "$source_folder/tests/data" -name "events.out.tfevents.*" | sort | head -n 1)" "$folder/code/events"
cat >"$folder/code/work" <<'END'
#!/bin/sh
# work KIND CODE-FOLDER: behaves as KIND says, in {output}
echo "this is $1"
metrics() { printf '{"iteration": 1, "lm loss": "0x%s", "time": %s}\n' "$1" "$(date +%s%N)" >m.jsonl; }
case $1 in
  exit-3) metrics 41293069; exit 3 ;;
  killed) metrics 41293069; kill -9 $$ ;;
  nan) metrics 7fc00000 ;;
  nothing) : ;;
  half) head -c 700 "$2/events" >events.out.tfevents.1.host.1.0 ;;
  forks) metrics 41293069; setsid sleep 1000 & ;;
  deaf) trap '' TERM INT HUP; metrics 41293069; while :; do sleep 1; done ;;
  loud) metrics 41293069; truncate -s "$LOG_SIZE" /proc/self/fd/1; echo end ;;
  erases) metrics 41293069; rm -rf "$(dirname "$PWD")" ;;
  latin-1) metrics 41293069; : >"$(printf 'caf\351')" ;;
esac
END
chmod +x "$folder/code/work"
isolate
commit_code
cd "$folder"
{
  printf 'schema_version: 1\nname: bad\nrecipe: debug\ncode: {work: {repository: code}}\n'
  printf 'environment: {LOG_SIZE: "%s"}\nlaunch: {argv: ["{code.work}/work"]}\narms:\n' "$log_size"
  for kind in exit-3 killed nan nothing half forks deaf loud erases latin-1; do
    printf '  %s: {arguments: [%s, "{code.work}"]}\n' "$kind" "$kind"
  done
} >bundle.yaml
{
  printf 'schema_version: 1\ngates:\n'
  for kind in exit-3 killed nan nothing half forks deaf loud erases latin-1; do
    limit=1m
    [[ $kind != deaf ]] || limit=2s
    printf '  %s: {kind: repeatability, arm: %s, metrics: [lm loss], run_limit: %s}\n' "$kind" "$kind" "$limit"
  done
} >qualification.yaml
"$qualify" init >/dev/null
"$qualify" bundle seal --quiet bundle.yaml >/dev/null

check() { # KIND EXIT-CODE TEXT
  local got=0
  "$qualify" run "$1" --bundle bad >out 2>err || got=$?
  ((got == $2)) || failed "'$1' ended with $got, not $2"
  grep -q "$3" out || failed "'$1' does not say '$3'"
  grep -q certificate out && failed "'$1' got a certificate"
  echo "$1: $(sed -n 1,2p out | tr '\n' ' ')"
}
logs_of() { # KIND: the path that was printed holds what the workload said
  local at
  at=$(sed -n -e 's/^  logs of run a: //p' -e 's#^  logs: \(.*\)#\1/a/attempt-1#p' out)
  [[ -n $at ]] || failed "'$1' prints no path of its logs"
  grep -q "this is $1" "$at/logs/stdout.log" || failed "the logs of '$1' are not at $at"
}
check exit-3 3 'exit code 3' && logs_of exit-3
check killed 3 'signal 9' && logs_of killed
check nan 3 'lm loss is not finite at iteration 1' && logs_of nan
check nothing 3 'no metrics could be read' && logs_of nothing
check half 3 'inconclusive'
check deaf 3 'the job ended as timeout'
check erases 3 'left no result'
check latin-1 3 'name of output/caf.* is not UTF-8'

# A log far larger than the memory that qualify and its jobs may have: read and kept in pieces.
got=0
(ulimit -v 400000 && "$qualify" run loud --bundle bad >out 2>err) || got=$?
((got == 0)) || failed "a workload with a log of $log_size ended with $got"
echo "loud: $(sed -n 1p out), a log of $log_size in 400 MB of address space"

# A process that forked away is ended, and is not waited for.
got=0
"$qualify" run forks --bundle bad >out 2>err || got=$?
((got == 0)) || failed "a workload that forked away ended with $got"
for process in /proc/[0-9]*; do
  [[ $(readlink "$process/cwd" 2>/dev/null) != "$folder"/* ]] ||
    failed "process ${process#/proc/} is left: $(tr '\0' ' ' <"$process/cmdline")"
done
cd /
chmod -R u+w "$folder" && rm -rf "$folder"
echo "bad_workloads: all as it must be"
