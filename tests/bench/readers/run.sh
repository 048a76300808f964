#!/usr/bin/env bash
# tests/bench/readers/run.sh [MEGABYTES]
#
# Reads generated files of each kind with qualify's readers and with peers, and compares each with a
# copy; prints what each took.
# The floor of JSON Lines is simdjson alone, which visits each member and keeps nothing.
# Peers: jq and Python's json (both must decode every line), DuckDB's read_json where npm has
# installed it: npm ci --prefix tests/bench/readers. Event files have no peer here.
# Needs the release preset built: cmake --preset release && cmake --build --preset release
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

megabytes=${1:-1000}
reader=../../../build/release/tests/bench/readers/read_file
floor=../../../build/release/tests/bench/readers/visit_json
[[ -x $reader && -x $floor ]] || { echo "build the release preset first" >&2; exit 2; }
folder=$(mktemp -d "${TMPDIR:-/tmp}/qualify-bench.XXXXXX")
trap 'rm -rf "$folder"' EXIT

for kind in log log-dense json-lines json-dense events; do
  amount=$megabytes
  [[ $kind == events ]] && amount=$((megabytes / 10 + 1)) # generated in Python, byte by byte
  python3 generate.py "$kind" "$amount" >"$folder/$kind"
  printf '%-11s qualify: ' "$kind"
  "$reader" "$folder/$kind"
  printf '%-11s qualify, two: ' "$kind"
  "$reader" "$folder/$kind" "$folder/$kind"
  if [[ $kind == json-* ]]; then
    printf '%-11s simdjson alone: ' "$kind"
    "$floor" "$folder/$kind"
    peer() {
      printf '%-11s %s: ' "$kind" "$1"
      shift
      ( TIMEFORMAT='cpu %U s + %S s, wall %R s'; time "$@" >"$folder/out" )
    }
    command -v jq >/dev/null && peer jq jq -c 'select(.iteration) | [.iteration, ."lm loss"]' "$folder/$kind"
    peer "python json" python3 -c 'import json, sys
values = {}
for line in open(sys.argv[1], "rb"):
    record = json.loads(line)
    if "iteration" in record:
        values[record["iteration"]] = record["lm loss"]
print(len(values))' "$folder/$kind"
    if [[ -d node_modules/@duckdb/node-api ]]; then
      peer duckdb node duckdb.mjs "$folder/$kind"
    fi
  fi
  rm "$folder/$kind"
done
