#!/usr/bin/env bash
# quickstart_repeat20.sh QUALIFY TRAINER SOURCE-FOLDER
#
# Twenty A/A repeats of each arm of the quickstart: two launches, compared by `qualify compare`.
# Ordered reduction must be equal in 20 of 20, though the second launch has one core only; reduction
# in arrival order must differ in at least 19 of 20, with all cores for both.
set -euo pipefail
qualify=$1 trainer=$2 source_folder=$3
text=/usr/share/common-licenses/GPL-3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
core=$(taskset -cp $$ | sed 's/.*: *//; s/[,-].*//')

launch() { # NAME REDUCTION [COMMAND PREFIX…]
  local name=$1 reduction=$2
  shift 2
  "$@" "$trainer" --config "$source_folder/examples/quickstart/train.conf" --text "$text" \
    --output "$folder/$name" --reduction "$reduction" --train-iters 80 --trace none >/dev/null
}

equal=0 differs=0
for ((repeat = 1; repeat <= 20; ++repeat)); do
  rm -rf "${folder:?}"/*
  launch a ordered
  launch b ordered taskset -c "$core"
  status=0
  "$qualify" compare "$folder/a/tensorboard" "$folder/b/tensorboard" >"$folder/out" || status=$?
  if ((status == 0)) && cmp -s "$folder"/{a,b}/checkpoints/iter_0000080/metadata.json; then
    equal=$((equal + 1))
  else
    echo "ordered, repeat $repeat: exit code $status"
    cat "$folder/out"
  fi
  launch c arrival
  launch d arrival
  status=0
  "$qualify" compare "$folder/c/tensorboard" "$folder/d/tensorboard" >"$folder/out" || status=$?
  if ((status == 1)); then
    differs=$((differs + 1))
  else
    echo "arrival, repeat $repeat: exit code $status"
    cat "$folder/out"
  fi
done
echo "ordered: equal in $equal of 20; arrival: differs in $differs of 20"
((equal == 20 && differs >= 19))
