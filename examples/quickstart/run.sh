#!/usr/bin/env bash
# examples/quickstart/run.sh [--work FOLDER]
#
# A real qualification, from a bare Debian 12 machine to a verified certificate:
# installs the packages that building needs (says which), builds qualify and a small
# data-parallel training program, and takes that program through qualify.
# Under a minute once built. May be run again at once; needs no network when everything is
# installed.
#
#   --work FOLDER   where the runs and the state go (default: build/quickstart/work)
#
# Exit: 0 everything came out as it must; 1 something did not (it says what); 2 a package or a
# file that is needed cannot be had here.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_folder=$(cd "$here/../.." && pwd)
build=$source_folder/build/quickstart
work=$build/work
text=/usr/share/common-licenses/GPL-3 # English, 35 kB, on every Debian machine

while (($#)); do
  case $1 in
    --work)
      [[ $# -ge 2 ]] || { echo "run.sh: --work needs a folder" >&2; exit 2; }
      work=$2
      shift
      ;;
    -h | --help)
      sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *)
      echo "run.sh: unknown argument $1; --help shows those there are" >&2
      exit 2
      ;;
  esac
  shift
done

# What is shown must not hang on who runs it: no inherited setting steers qualify or git.
umask 022
while read -r name; do
  unset "$name"
done < <(compgen -e | grep -E '^(QUALIFY|GIT)_' || true)
export LC_ALL=C.UTF-8

step() { printf '\n== %s\n' "$*"; }
stop() {
  printf '\nrun.sh: %s\n' "$1" >&2
  exit "${2:-1}"
}

# expect CODES ARGUMENTS…: shows the command, runs it, and stops unless it ends with one of CODES.
expect() {
  local wanted=$1 got=0
  shift
  printf '$ qualify %s\n' "$*"
  "$qualify" "$@" | tee "$work/last-output" || got=${PIPESTATUS[0]}
  [[ " $wanted " == *" $got "* ]] ||
    stop "'qualify $*' ended with exit code $got; $wanted was expected. The state is in $work"
}

build_all() {
  local log=$build/build.log
  mkdir -p "$build"
  [[ -x $build/orchestrator/cli/qualify ]] || echo "The first time this takes some minutes."
  if ! { cmake -S "$source_folder" --preset release -B "$build" \
    -DQUALIFY_TESTS=OFF -DQUALIFY_BENCH=OFF &&
    cmake --build "$build" -j "$(nproc)"; } >"$log" 2>&1; then
    tail -n 25 "$log" >&2
    stop "the build failed; all of it is in $log"
  fi
}

# The repository that is sealed. Its commit hangs on its content alone, so that an unchanged program
# gives the same bundle each time.
make_repository() {
  local git=(env GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
    GIT_AUTHOR_DATE=2026-01-01T00:00:00Z GIT_COMMITTER_DATE=2026-01-01T00:00:00Z
    git -C "$work/code" -c user.name=quickstart -c user.email=quickstart@localhost)
  rm -rf "$work/code"
  mkdir -p "$work/code"
  cp "$build/examples/quickstart/trainer/quickstart_trainer" "$work/code/"
  cp "$text" "$work/code/text"
  cp "$here"/{bundle.yaml,qualification.yaml,train.conf} "$work/"
  "${git[@]}" init --quiet --initial-branch main
  "${git[@]}" add --all
  "${git[@]}" commit --quiet --message "Training program and text of the quickstart"
}

step "Packages"
"$source_folder/scripts/install-packages.sh" "$here/packages.txt"
[[ -r $text ]] || stop "the training text $text is not there; Debian's base-files has it" 2
echo "All that building needs is installed."

step "Build"
build_all
qualify=$build/orchestrator/cli/qualify
"$qualify" --version | sed -n 1p

step "A training program in a git repository"
mkdir -p "$work"
work=$(cd "$work" && pwd)
make_repository
cd "$work"
git -C code log -1 --format='commit %h  %s'
[[ -d .qualify ]] || expect 0 init

step "Freeze program, configuration and arms in a bundle"
expect 0 bundle seal bundle.yaml
bundle=$("$qualify" bundle seal --quiet bundle.yaml)
bundle=${bundle#sha256:}
bundle=${bundle:0:12}

step "Deterministic arm, launched twice: every bit must be equal"
expect 0 run repeatability --bundle "$bundle"
certificate=$(sed -n 's/^ *certificate \([0-9a-f]*\)$/\1/p' last-output)
[[ -n $certificate ]] || stop "the gate passed, but no certificate was issued"

step "Nondeterministic arm, launched twice: it must differ (exit code 1)"
expect 1 run nondeterministic --bundle "$bundle"

step "What determinism costs: four AB/BA pairs and a placebo, measured here and now"
expect "0 1 3" run overhead --bundle "$bundle" # whatever this machine gives, with its bounds
# The newest: the state outlives a run of this script.
runs=$(find .qualify/runs -maxdepth 1 -name 'overhead-*' -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2-)
"$qualify" perf --det "$runs"/pair-?-det/attempt-1/output \
  --nondet "$runs"/pair-?-nondet/attempt-1/output \
  --placebo "$runs"/placebo-1-{first,second}/attempt-1/output \
  --order AB,BA,AB,BA --gate overhead --plot overhead.svg >overhead.txt || true
[[ -s overhead.svg ]] || stop "no picture of the overhead was drawn"
echo "A picture of it: $work/overhead.svg"

step "Where it stands"
expect 0 status

step "Is the certificate whole? Signature, bundle and evidence"
expect 0 cert verify "${certificate:0:12}"
"$qualify" cert show "$certificate" --json >repeatability.sigstore.json

cat <<TEXT

Certificate  $work/repeatability.sigstore.json

Next, in $work with
  PATH=$build/orchestrator/cli:\$PATH
try
  qualify run restart --bundle $bundle
  qualify bundle show $bundle
  qualify cert show ${certificate:0:12}
  qualify status nondeterministic
or edit bundle.yaml, qualification.yaml and train.conf, and seal and run again.
For a training of your own, start from these three files:
  $here
TEXT
