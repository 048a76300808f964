#!/usr/bin/env bash
# slurm_gate.sh QUALIFY TRAINER SOURCE-FOLDER
#
# A gate on a real Slurm: without a grant it is refused and nothing is submitted; with one it runs in
# the reservation and gets its certificate. Then a restart and a localization gate, a scale gate at its
# topology, whose nodes are counted, and a baseline gate against what that proved.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../support/project.sh"
qualify=$1 trainer=$2 source_folder=$3
folder=$(mktemp -d)
cluster=$source_folder/tests/support/slurm-cluster
trap '"$cluster" down --dir "$folder/cluster" >/dev/null 2>&1' EXIT
failed() {
  echo "FAILED: $1 (folder: $folder)" >&2
  exit 1
}
"$cluster" up --nodes 4 --gpus 8 --dir "$folder/cluster"
export SLURM_CONF=$folder/cluster/slurm.conf
nodes=$(sinfo -h -N -o %N | head -n 1)
scontrol create reservation reservationname=night users=root starttime=now duration=180 "nodes=$nodes"

isolate
mkdir "$folder/code"
cp "$trainer" "$folder/code/quickstart_trainer"
cp /usr/share/common-licenses/GPL-3 "$folder/code/text"
cp "$source_folder"/examples/quickstart/{bundle.yaml,qualification.yaml,train.conf} "$folder/"
commit_code
cd "$folder"
"$qualify" init
"$qualify" bundle seal --quiet bundle.yaml

code=0
"$qualify" run repeatability --bundle quickstart --reservation night 2>err || code=$?
((code == 3)) || failed "a run without a grant ended with $code"
grep -q 'is not granted' err || failed "the refusal does not say why"
[[ -z $(squeue -h -t all) ]] || failed "something was submitted without a grant"

"$qualify" reservation grant night --gate repeatability
"$qualify" run repeatability --bundle quickstart --reservation night
certificate=$("$qualify" cert list | awk 'NR == 2 { print $1 }')
"$qualify" cert verify "$certificate"
[[ $(squeue -h -t all | wc -l) == 2 ]] || failed "not exactly two jobs"

# A run that goes on from another's checkpoint, in another job.
"$qualify" reservation grant night --gate restart
"$qualify" run restart --bundle quickstart --reservation night | tee out
tr -s ' \n' ' ' <out | grep -q 'the resumed run equals the uninterrupted one' || failed "the restart gate"

# What is planted is found from the evidence of jobs; what tracing costs may stay undecided here.
"$qualify" reservation grant night --gate localization
code=0
"$qualify" run localization --bundle quickstart --reservation night >out || code=$?
cat out
((code == 0 || code == 3)) || failed "the localization gate ended with $code"
tr -s ' \n' ' ' <out | grep -q '3 of 3 planted divergences were found where they were planted' ||
  failed "what was planted was not found"
"$qualify" localize localization/pair-1-traced localization/planted-2 | tee out || true
tr -s ' \n' ' ' <out | grep -q 'iteration 20, grad-reduce, gradient output, all-reduce #0 of dp.0' ||
  failed "the sum's divergence is not named"

# Two nodes of eight GPUs: one task a node, the first of which writes the metric.
scontrol delete reservationname=night
two=$(sinfo -h -N -o %N | sort -u | head -n 2 | paste -sd,)
scontrol create reservation reservationname=evening users=root starttime=now duration=60 "nodes=$two"
rm -rf "$folder/code"
write_workload <<'END'
[ "$SLURM_PROCID" = 0 ] || exit 0
END
commit_code
write_bundle wide
sed -i 's/recipe: debug/recipe: production/' bundle.yaml
echo 'topology: {nodes: 2, gpus_per_node: 8}' >>bundle.yaml
write_gates none
cat >>qualification.yaml <<'END'
  scale: {kind: scale, topology: {nodes: 2, gpus_per_node: 8}, arm: det, metrics: [lm loss], run_limit: 5m}
  base: {kind: baseline, baseline: wide, arm: det, metrics: [lm loss], run_limit: 5m}
  larger: {kind: scale, topology: {nodes: 4, gpus_per_node: 8}, arm: det, metrics: [lm loss], run_limit: 5m}
END
"$qualify" bundle seal --quiet bundle.yaml
for gate in scale base larger; do "$qualify" reservation grant evening --gate "$gate"; done
code=0
"$qualify" run larger --bundle wide --reservation evening 2>err || code=$?
((code == 3)) || failed "a smaller bundle on a larger gate ended with $code"
"$qualify" run scale --bundle wide --reservation evening | tee out
grep -q 'at 2 nodes x 8 GPUs are equal bit for bit' out || failed "the scale is not in the verdict"
certificate=$("$qualify" cert list --gate scale | awk 'NR == 2 { print $1 }')
"$qualify" cert show "$certificate" | tr -d ' \n' | grep -qF "\"nodes\":[\"${two/,/\",\"}\"]" ||
  failed "the certificate does not name both nodes"
"$qualify" baseline set wide "$certificate"
"$qualify" run base --bundle wide --reservation evening | tee out
grep -q "equal baseline 'wide' bit for bit" out || failed "the baseline is not in the verdict"
"$qualify" verify --recompute
cd /
rm -rf "$folder/code"
echo "slurm_gate: all as it must be"
