#!/usr/bin/env bash
# gate_kinds.sh QUALIFY
#
# Gates of kind scale and baseline from declaration to certificate on this machine: what they
# refuse before anything starts, a candidate that equals the baseline, one that changes it, and the
# verdicts judged again from their evidence.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../support/project.sh"
qualify=$1
folder=$(mktemp -d)
write_workload <<'END'
# one metric, equal in every run
END
isolate
commit_code
cd "$folder"
write_bundle debugging
sed 's/recipe: debug/recipe: production/; s/name: debugging/name: shipped/' bundle.yaml >shipped.yaml
write_gates first
cat >>qualification.yaml <<'END'
  scale: {kind: scale, topology: {nodes: 1, gpus_per_node: 0}, arm: det, metrics: [lm loss], run_limit: 5m}
  large: {kind: scale, topology: {nodes: 384, gpus_per_node: 8}, arm: det, metrics: [lm loss], run_limit: 5m}
  base: {kind: baseline, baseline: v1, arm: det, metrics: [lm loss], run_limit: 5m}
  whole: {kind: coverage, max_age: 8d, models: {m: {correctness: first, performance: cost}}}
  cost: {kind: performance, arms: {deterministic: det, nondeterministic: det2}}
END
"$qualify" init >/dev/null
"$qualify" bundle seal --quiet bundle.yaml >/dev/null
"$qualify" bundle seal --quiet shipped.yaml >/dev/null

# What a gate asks stands in its file.
expect 0 'Exactly 384 nodes x 8 GPUs, counted from evidence.' gate explain large
expect 0 'm: correctness by gate first, performance by gate cost.' gate explain whole
expect 0 '"kind": "baseline"' gate explain base --json
expect 0 'coverage' gate list
expect 2 'gates there: first, scale' gate explain other

# Refused before anything starts.
expect 3 'a debug recipe never closes a gate that asks for production' run scale --bundle debugging
expect 3 'speaks of exactly 384 nodes x 8 GPUs' run large --bundle shipped
expect 2 "no baseline 'v1'" plan base --bundle debugging
expect 2 'has no runs: it rests on other gates' plan whole --bundle debugging
[[ -z $(ls -A .qualify/runs) ]] || failed 'something was run'

expect 0 'at 1 node x 0 GPUs are equal bit for bit (E1)' run scale --bundle shipped
expect 0 'E1' run first --bundle debugging
certificate() { "$qualify" cert list --gate "$1" --json | grep -m1 '"id"' | cut -d'"' -f4; }
"$qualify" baseline set v1 "$(certificate first)" >/dev/null
expect 0 'All against baseline v1: run a of certificate' plan base --bundle debugging
expect 0 "2 runs of arm 'det' equal baseline 'v1' bit for bit (E1)" run base --bundle debugging
expect 0 '"claim": "metric match"' cert show "$(certificate base)"
expect 0 '"evidence": "sha256:' cert show "$(certificate base)"

# A candidate that is as repeatable, and computes something else.
sed -i 's/0x41293069/0x41293070/' code/work
git -C code -c user.name=t -c user.email=t@localhost commit --quiet --all --message two
"$qualify" bundle seal --quiet bundle.yaml >/dev/null
expect 1 "changes baseline 'v1': baseline and a: lm loss first differs at iteration 1" \
  run base --bundle debugging
expect 1 'repeatable: the 2 runs are equal among themselves' run base --bundle debugging
expect 0 '5 verdicts, all the same' verify --recompute

expect 0 'baseline and a: differs' explain base
expect 0 'lm loss: differs from iteration 1: 10.574319 (0x41293069)' explain base
expect 0 '`- certificate' explain base-1
expect 0 '"run_a": "baseline"' explain base --json
[[ $("$qualify" explain base | wc -L) -le 80 ]] || failed 'the tree is wider than 80 columns'
expect 2 "no gate or qualification 'other'" explain other

# The baseline's evidence is what those verdicts rest on.
blob=$(grep -l '"run":"a"' .qualify/evidence/blobs/sha256/* | xargs grep -l '"gate":"first"' | head -n 1)
metrics=$(grep -o '"path":"output/m.jsonl"' "$blob" >/dev/null && tr ',{' '\n' <"$blob" |
  grep -B3 -A3 '"path":"output/m.jsonl"' | grep -om1 '"digest":"sha256:[0-9a-f]*' | cut -d: -f3)
chmod u+w ".qualify/evidence/blobs/sha256/$metrics"
printf 'X' | dd of=".qualify/evidence/blobs/sha256/$metrics" bs=1 seek=20 conv=notrunc status=none
expect 5 'qualification base-1' verify

cd /
chmod -R u+w "$folder"
rm -rf "$folder"
echo "gate_kinds: all as it must be"
