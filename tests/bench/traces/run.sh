#!/usr/bin/env bash
# tests/bench/traces/run.sh [RANKS] [ITERATIONS] [PEER_RANKS]
#
# Traces at full scale (default 3072 ranks x 50 iterations, about 80 rows a rank and iteration), a planted
# bit in one tensor of one rank, that training carries to all others, and the bars of the traces' work:
# sealing, equality by roots, localisation, --full against cmp. Then from JSON Lines to the answer on
# PEER_RANKS ranks (default 96) against a comparator by key in Python and DuckDB (npm ci --prefix
# tests/bench/traces). Each is run once before it is timed; time is CPU (user + system) and wall.
# Needs: the release preset built, and disk below TMPDIR: about 8 GB at full scale (the JSON Lines of
# one run at a time).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

ranks=${1:-3072}
iterations=${2:-50}
peer_ranks=${3:-96}
root=$PWD/../../../build/release
qualify=$root/orchestrator/cli/qualify
generate=$root/tests/bench/traces/trace_generate
[[ -x $qualify && -x $generate ]] || { echo "build the release preset first" >&2; exit 2; }
folder=$(mktemp -d "${TMPDIR:-/tmp}/qualify-bench.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"

took() { # LABEL COMMAND…: exit codes of 0 and 1 are answers
  local label=$1
  shift
  local status=0
  /usr/bin/env python3 - "$label" "$@" <<'PY' || status=$?
import resource, subprocess, sys, time
label, *command = sys.argv[1:]
begin = time.monotonic()
done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
wall = time.monotonic() - begin
use = resource.getrusage(resource.RUSAGE_CHILDREN)
line = next((l for l in done.stdout.splitlines() if "divergence" in l or "rows" in l), "") or done.stdout.split("\n")[0]
print(f"{label:<34} wall {wall:8.3f} s  cpu {use.ru_utime + use.ru_stime:8.3f} s  peak {use.ru_maxrss / 1024:7.0f} MiB  {line[:90]}", flush=True)
sys.exit(0 if done.returncode in (0, 1) else done.returncode)
PY
  return "$status"
}

for run in a b c; do
  plant=()
  [[ $run == b ]] && plant=(1 7 $((ranks / 3)))
  "$generate" "$run" "$ranks" "$iterations" "${plant[@]}"
  [[ $run == a ]] && echo "JSON Lines of one run: $(du -sm "$run" | cut -f1) MB"
  took "seal $run, one thread" "$qualify" trace seal "$run" --jobs 1
  rm -rf "$run"
done
echo "sealed: $(du -sm a.sealed | cut -f1) MB in $(find a.sealed -name '*.arrow' | wc -l) files; roots $(stat -c %s a.sealed/roots.bin) bytes"

python3 "$OLDPWD/equal_roots.py" "$qualify" a.sealed c.sealed
for _ in 1 2; do took "localize, equal, by roots" "$qualify" localize a.sealed c.sealed; done
for _ in 1 2; do took "localize, one planted bit" "$qualify" localize a.sealed b.sealed; done
took "localize, one thread" "$qualify" localize a.sealed b.sealed --jobs 1
compare_files() {
  for file in a.sealed/*.arrow; do cmp -s "$file" "c.sealed/${file#*/}" || echo differs; done
}
export -f compare_files
cat a.sealed/*.arrow >a.all
cat c.sealed/*.arrow >c.all
for _ in 1 2; do took "cmp of all bytes, one file" cmp a.all c.all; done
rm a.all c.all
took "cmp, file by file" bash -c compare_files
for _ in 1 2; do took "localize --full, equal" "$qualify" localize a.sealed c.sealed --full; done
took "localize --full, equal, one thread" "$qualify" localize a.sealed c.sealed --full --jobs 1
rm -rf ./*.sealed

"$generate" a "$peer_ranks" "$iterations"
"$generate" b "$peer_ranks" "$iterations" 1 7 $((peer_ranks / 3))
echo "for peers: $(cat a/*.jsonl b/*.jsonl | wc -l) records, $(du -sm a | cut -f1) MB a run"
for _ in 1 2; do took "raw to answer, one thread" "$qualify" localize a b --jobs 1; done
took "python, by key" python3 "$OLDPWD/compare_by_key.py" a b
if [[ -d $OLDPWD/node_modules/@duckdb/node-api ]]; then
  took "duckdb, one thread" node "$OLDPWD/duckdb.mjs" a b 1
fi
