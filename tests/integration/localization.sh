#!/usr/bin/env bash
# localization.sh QUALIFY TRAINER SOURCE-FOLDER
#
# The localization gate on the quickstart's trainer, which plants three divergences: each is found
# where it was planted, from the evidence store. Then summaries alone (L0), narrowed down level by
# level with `localize --run`. What tracing costs is measured here and now, and may stay undecided;
# nothing else may. The folder stays on failure.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../support/project.sh"
qualify=$1 trainer=$2 source_folder=$3
folder=$(mktemp -d)
failed() {
  echo "FAILED: $1 (folder: $folder)" >&2
  exit 1
}
expect() { # CODES ARGUMENTS…
  local wanted=$1 got=0
  shift
  "$qualify" "$@" >"$folder/out" 2>"$folder/err" || got=$?
  echo "--- qualify $* -> $got"
  cat "$folder/out" "$folder/err"
  [[ " $wanted " == *" $got "* ]] || failed "'qualify $*' ended with $got, not $wanted"
}
says() { tr -s ' \n' ' ' <"$folder/out" | grep -qE -- "$1" || failed "no '$1' in the output"; }
silent_on() { ! grep -qE -- "$1" "$folder/out" || failed "'$1' in the output"; }

isolate
mkdir "$folder/code"
cp "$trainer" "$folder/code/quickstart_trainer"
cp /usr/share/common-licenses/GPL-3 "$folder/code/text"
# Forty short iterations, and two further arms that record summaries alone.
sed -e 's/^train-iters = .*/train-iters = 40/' -e 's/^save-interval = .*/save-interval = 40/' \
  -e 's/^micro-batch-size = .*/micro-batch-size = 16/' \
  "$source_folder/examples/quickstart/train.conf" >"$folder/train.conf"
sed -e '/^arms:/a\  summaries: {arguments: [--reduction, ordered, --trace, L0]}\
\  planted-summaries: {arguments: [--reduction, ordered, --trace, L0, --plant, "gradient:2:7"]}' \
  "$source_folder/examples/quickstart/bundle.yaml" >"$folder/bundle.yaml"
cat >"$folder/qualification.yaml" <<'END'
schema_version: 1
gates:
  full:
    kind: localization
    recipe: debug
    arms: {traced: deterministic, untraced: untraced}
    ranks: 4
    planted:
      planted-gradient: {iteration: 7, phase: backward, site: grad.embedding.weight, ranks: 2, classification: op}
      planted-sum: {iteration: 20, phase: grad-reduce, site: gradient, ranks: 1, classification: collective}
      planted-tokens: {iteration: 11, phase: data, site: tokens, ranks: 3, classification: data}
    metrics: [lm loss, grad-norm, num-zeros, learning-rate]
    steps: 40
    overhead: {below: 10, exclude: {warmup_steps: 5}}
    run_limit: 5m
  summaries:
    kind: localization
    recipe: debug
    arms: {traced: summaries, untraced: untraced}
    ranks: 4
    planted:
      planted-summaries: {iteration: 7, phase: backward, site: summary.tensor, ranks: 2, classification: op}
    metrics: [lm loss]
    steps: 40
    overhead: {below: 10, exclude: {warmup_steps: 5}}
    run_limit: 5m
  elsewhere:
    kind: localization
    recipe: debug
    arms: {traced: summaries, untraced: untraced}
    ranks: 4
    planted:
      planted-summaries: {iteration: 8, phase: backward, site: summary.tensor, ranks: 2, classification: op}
    metrics: [lm loss]
    steps: 40
    overhead: {below: 10, exclude: {warmup_steps: 5}}
    run_limit: 5m
END
commit_code
cd "$folder"
expect 0 init
expect 0 bundle seal --quiet bundle.yaml
bundle=$(<out)

expect 0 plan full --bundle "$bundle"
says 'planted-3'
says 'pair-4-untraced'

expect "0 3" run full --bundle "$bundle"
says '3 of 3 planted divergences were found where they were planted; 4 traced runs of 4 ranks'
says 'tracing costs -?[0-9.]+%'
if grep -q ': inconclusive' out; then
  silent_on 'certificate'
else
  says 'certificate [0-9a-f]{64}'
fi

# The same from the evidence, by the names of runs.
expect 1 localize full/pair-1-traced full/planted-1
says 'first divergence: iteration 7, backward, grad.embedding.weight'
expect 0 localize full/pair-1-traced full/pair-2-traced
expect 2 localize full/pair-1-traced full/pair-1-untraced
grep -q 'left no traces' err || failed "an untraced run's refusal does not say why"

# Declared at the wrong place: a gate that says so is one that looks.
expect 1 run elsewhere --bundle "$bundle"
says 'iteration 7, not 8'

expect "0 3" run summaries --bundle "$bundle"
says '1 of 1 planted divergences were found'
says 'limit: traces at L0'
expect 1 localize summaries/pair-1-traced summaries/planted-1
says 'capture next: L1 on ranks 2, iteration 7'
expect 1 localize summaries/pair-1-traced summaries/planted-1 --run
says 'summaries.capture-[0-9]+/a and summaries.capture-[0-9]+/b'
says 'backward, grad.embedding.weight, microbatch 0'
says 'capture next: nothing; full bytes were recorded already'
[[ $(grep -c '^== ' out) == 3 ]] || failed "not the runs themselves, L1 and L2"
expect 1 localize summaries/pair-1-traced summaries/planted-1 --run --json
grep -q '"levels"' out || failed "no levels in the record"
# The same arm twice: nothing parts, and there is nothing to run again.
expect 0 localize summaries/pair-1-traced summaries/pair-2-traced --run
expect 0 status
says 'summaries.capture'
expect 0 cert list
silent_on 'capture'
expect 0 verify --recompute
cd /
rm -rf "$folder"
echo "localization: all as it must be"
