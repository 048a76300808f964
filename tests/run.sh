#!/usr/bin/env bash
# tests/run.sh [--long] [--preset P] [CTest arguments]
#
# Installs what the tests need (says which; Debian 12, as root or through sudo), configures, builds,
# and runs all tests, the slow ones and those that start Slurm among them. Ends with CTest's closing
# lines and its exit code; exit 2 where something that is needed cannot be had.
#
#   --preset P   the CMake preset to build and test (default: dev)
#   --long       also: clang-tidy over every source, the fuzzers for a moment each, and all tests
#                under AddressSanitizer/UBSan and ThreadSanitizer
# Whatever else is given goes to CTest:  tests/run.sh -R Digest    tests/run.sh -LE slurm
#
# Needs no network when everything is installed. May be run again at once; builds what changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

long=0
preset=dev
while (($#)); do
  case $1 in
    --long) long=1 ;;
    --preset)
      [[ $# -ge 2 ]] || { echo "tests/run.sh: --preset needs a name" >&2; exit 2; }
      preset=$2
      shift
      ;;
    --preset=*) preset=${1#*=} ;;
    -h | --help)
      sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) break ;;
  esac
  shift
done

# No result may hang on who runs this: one locale, time zone and umask, an empty home, and nothing
# inherited that steers qualify, Slurm, git or the test runners.
umask 022
export LC_ALL=C.UTF-8 TZ=UTC
unset LANGUAGE
while read -r name; do
  unset "$name"
done < <(compgen -e | grep -E '^(QUALIFY|SLURM|SLURMD|SBATCH|SALLOC|SCHED|SACCT|SQUEUE|SINFO|GIT|GTEST|CTEST|XDG)_' || true)

lists=(examples/quickstart/packages.txt tests/packages.txt)
((long)) && lists+=(tests/packages-long.txt)
scripts/install-packages.sh "${lists[@]}"

home=$(mktemp -d "${TMPDIR:-/tmp}/qualify-tests-home.XXXXXX")
trap 'rm -rf "$home"' EXIT

build() {
  echo "== Building ($1)"
  cmake --preset "$1" &&
    cmake --build --preset "$1" -j "$(nproc)"
}
suite() {
  local of=$1
  shift
  echo "== Testing ($of)"
  HOME=$home ctest --preset "$of" "$@" </dev/null
}

build "$preset"
status=0
failed=()
suite "$preset" "$@" || { status=$?; failed+=("tests ($preset)"); }

if ((long)); then
  build tidy || failed+=("clang-tidy")
  if [[ -x tests/fuzz/run.sh ]]; then
    tests/fuzz/run.sh || failed+=("fuzzers")
  fi
  for sanitized in asan-ubsan tsan; do
    { build "$sanitized" && suite "$sanitized" "$@"; } || failed+=("tests ($sanitized)")
  done
  if ((${#failed[@]})); then
    printf 'Failed: %s\n' "${failed[@]}"
    ((status)) || status=1
  fi
fi
exit "$status"
