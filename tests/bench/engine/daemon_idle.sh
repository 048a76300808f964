#!/usr/bin/env bash
# daemon_idle.sh QUALIFY [SECONDS]
#
# What a daemon costs that has nothing to do: 20 gates armed on schedules that are far away. Prints its share of one
# core over the time, and its largest memory.
set -euo pipefail
qualify=$1 seconds=${2:-60}
folder=$(mktemp -d)
daemon=
trap '[[ -z $daemon ]] || kill "$daemon" 2>/dev/null; chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
mkdir code
printf '#!/bin/sh\n' >code/work
chmod +x code/work
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null HOME=$folder QUALIFY_MODULES=$folder
git -C code init --quiet
git -C code add --all
git -C code -c user.name=t -c user.email=t@localhost commit --quiet --message one
printf 'schema_version: 1\nname: work\nrecipe: debug\ncode: {work: {repository: code}}\nlaunch: {argv: ["{code.work}/work"]}\narms: {det: {}}\n' >bundle.yaml
{
  printf 'schema_version: 1\ngates:\n'
  for ((i = 0; i < 20; ++i)); do
    printf '  g%d: {kind: repeatability, arm: det, metrics: [loss], schedule: "0 0 29 2 *"}\n' "$i"
  done
} >qualification.yaml
"$qualify" init >/dev/null
"$qualify" bundle seal --quiet bundle.yaml >/dev/null
for ((i = 0; i < 20; ++i)); do "$qualify" arm "g$i" --bundle work >/dev/null; done
"$qualify" daemon 2>log &
daemon=$!
until grep -q '^ready' log; do sleep 0.1; done
ticks() { awk '{print $14 + $15}' "/proc/$daemon/stat"; }
before=$(ticks)
sleep "$seconds"
after=$(ticks)
awk -v ticks=$((after - before)) -v hertz="$(getconf CLK_TCK)" -v seconds="$seconds" \
  'BEGIN {printf "daemon: %.3f %% of a core\n", 100 * ticks / hertz / seconds}'
awk '/VmHWM/ {printf "daemon: %.1f MiB at most\n", $2 / 1024}' "/proc/$daemon/status"
