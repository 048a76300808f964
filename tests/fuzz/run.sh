#!/usr/bin/env bash
# tests/fuzz/run.sh [SECONDS] [FUZZER…]
#
# Builds the libFuzzer targets with clang, AddressSanitizer and UBSan, and runs each for SECONDS
# (default 600), or those named. Inputs that reach new code are kept in tests/fuzz/corpus/NAME; one
# that crashes, leaks or hangs stays in build/fuzz/NAME-…, and the exit code is 1. A hang is an input
# that takes a minute: less may be due to what else the machine does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

seconds=${1:-600}
(($# > 0)) && shift
cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
  -DQUALIFY_FUZZ=ON -DQUALIFY_TESTS=OFF -DQUALIFY_SLURM=OFF \
  -DQUALIFY_SANITIZE=fuzzer-no-link,address,undefined >/dev/null
cmake --build build/fuzz --target fuzzers

fuzzers=("$@")
if ((${#fuzzers[@]} == 0)); then
  for binary in build/fuzz/tests/fuzz/fuzz_*; do
    [[ -x $binary && ! -d $binary ]] && fuzzers+=("${binary##*/fuzz_}")
  done
fi

failed=()
for name in "${fuzzers[@]}"; do
  corpus=tests/fuzz/corpus/$name
  found=build/fuzz/found/$name
  mkdir -p "$corpus" "$found"
  echo "== Fuzzing $name ($seconds s)"
  if build/fuzz/tests/fuzz/fuzz_"$name" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 \
    -max_len=8192 -use_value_profile=1 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/$name-" "$found" "$corpus" 2>"build/fuzz/$name.log"; then
    grep -E 'number_of_executed_units|new_units_added|peak_rss' "build/fuzz/$name.log" || true
    # Only what reaches new code, so that the folder in the tree stays small.
    rm -rf "build/fuzz/kept-$name"
    mkdir "build/fuzz/kept-$name"
    build/fuzz/tests/fuzz/fuzz_"$name" -merge=1 -max_len=8192 -use_counters=0 "build/fuzz/kept-$name" \
      "$corpus" "$found" 2>>"build/fuzz/$name.log"
    rm -rf "$corpus"
    mv "build/fuzz/kept-$name" "$corpus"
  else
    tail -n 40 "build/fuzz/$name.log"
    failed+=("$name")
  fi
done
if ((${#failed[@]})); then
  echo "Failed: ${failed[*]}"
  exit 1
fi
