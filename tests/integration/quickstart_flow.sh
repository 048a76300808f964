#!/usr/bin/env bash
# quickstart_flow.sh QUALIFY TRAINER SOURCE-FOLDER
#
# The quickstart's flow with the programs as built: verdicts, exit codes, what is named, and that the
# certificate holds, and stops holding once its evidence is touched. The folder stays on failure.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../support/project.sh"
qualify=$1 trainer=$2 source_folder=$3
folder=$(mktemp -d)
failed() {
  echo "FAILED: $1 (folder: $folder)" >&2
  exit 1
}
expect() { # CODE ARGUMENTS…
  local wanted=$1 got=0
  shift
  "$qualify" "$@" >"$folder/out" 2>"$folder/err" || got=$?
  echo "--- qualify $* -> $got"
  cat "$folder/out" "$folder/err"
  ((got == wanted)) || failed "'qualify $*' ended with $got, not $wanted"
}
says() { grep -qE "$1" "$folder/out" || failed "no '$1' in the output"; }

isolate
mkdir "$folder/code"
cp "$trainer" "$folder/code/quickstart_trainer"
cp /usr/share/common-licenses/GPL-3 "$folder/code/text"
cp "$source_folder"/examples/quickstart/{bundle.yaml,qualification.yaml,train.conf} "$folder/"
commit_code

cd "$folder"
expect 0 init
expect 0 bundle seal --quiet bundle.yaml
bundle=$(<out)
expect 0 bundle seal --quiet bundle.yaml
[[ $(<out) == "$bundle" ]] || failed "the same inputs gave another bundle"
expect 0 bundle verify "$bundle"

expect 0 run repeatability --bundle "$bundle"
says ': pass at E1$'
certificate=$(sed -n 's/^ *certificate \([0-9a-f]*\)$/\1/p' out)
[[ -n $certificate ]] || failed "a pass without a certificate"

expect 1 run nondeterministic --bundle "$bundle"
says ': fail$'
says '(lm loss|grad-norm|num-zeros)'
says 'iteration [0-9]+'

# A run that goes on from the checkpoint of iteration 100, one that does so wrongly.
expect 0 run restart --bundle "$bundle"
says ': pass at E1$'
says 'equals the uninterrupted one from iteration 101'

# What it costs is measured here and now: any verdict may come out, never one without its bounds.
code=0
"$qualify" run overhead --bundle "$bundle" >out 2>err || code=$?
cat out err
case $code in 0 | 1 | 3) ;; *) failed "'run overhead' ended with $code" ;; esac
says '^Overhead +-?[0-9.]+%, 95% interval \['
says '^pair 4 +BA '
says '^placebo pair 5 '
[[ $(wc -L <out) -le 80 ]] || failed "the overhead page is wider than 80 columns"
runs=(.qualify/runs/overhead-*)
code=0
"$qualify" perf --det "${runs[0]}"/pair-?-det/attempt-1/output \
  --nondet "${runs[0]}"/pair-?-nondet/attempt-1/output \
  --placebo "${runs[0]}"/placebo-1-{first,second}/attempt-1/output \
  --order AB,BA,AB,BA --gate overhead --plot overhead.svg >out 2>err || code=$?
cat out err
case $code in 0 | 1 | 3) ;; *) failed "'perf' ended with $code" ;; esac
grep -q '</svg>' overhead.svg || failed "no picture"

expect 0 status
says '^repeatability .*pass'
says '^nondeterministic .*fail'
says '^overhead .*(pass|fail|inconclusive)'
[[ $(wc -L <out) -le 80 ]] || failed "the status table is wider than 80 columns"

expect 0 cert verify "$certificate"
expect 0 cert show "$certificate" --json
says 'application/vnd.dev.sigstore.bundle'
expect 0 compare .qualify/runs/repeatability-[0-9]*/*/attempt-1/output/tensorboard

# One byte of each large file of the evidence, this certificate's among them.
while read -r blob; do
  chmod u+w "$blob"
  printf '\001' | dd of="$blob" bs=1 seek=5000 conv=notrunc status=none
done < <(find .qualify/evidence -type f -path '*blobs*' -size +20k)
expect 5 cert verify "$certificate"

cd /
rm -rf "$folder"
echo "quickstart_flow: all as it must be"
