#!/usr/bin/env bash
# full_size.sh QUALIFY RANK-PROGRAM SOURCE-FOLDER [NODES [GPUS]]
#
# A gate at full size on a real controller: 384 nodes x 8 GPUs, 3,072 tasks, inside a granted
# reservation: two runs, evidence of all nodes, a certificate that verifies; in less than 5 minutes
# from the grant on. Prints where the time went. Needs root, about 3 GB of memory and 3 GB in /tmp.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../support/project.sh"
qualify=$1 rank_program=$2 source_folder=$3 nodes=${4:-384} gpus=${5:-8}
limit=300
cluster=$source_folder/tests/support/slurm-cluster
folder=$(mktemp -d)
trap '"$cluster" down --dir "$folder/cluster" >/dev/null 2>&1; [[ -n ${keep:-} ]] || rm -rf "$folder"' EXIT
keep=1
failed() {
  echo "FAILED: $1 (folder: $folder)" >&2
  exit 1
}
mark() { printf '%4d s  %s\n' "$SECONDS" "$1"; }

"$cluster" up --nodes "$nodes" --gpus "$gpus" --dir "$folder/cluster"
mark "$nodes nodes with $((nodes * gpus)) GPUs are idle"
export SLURM_CONF=$folder/cluster/slurm.conf
scontrol create reservation reservationname=night users=root starttime=now duration=120 \
  "nodes=gpu[0001-$(printf '%04d' "$nodes")]" >/dev/null

isolate
mkdir "$folder/code"
cp "$rank_program" "$folder/code/rank_program"
commit_code
cat >"$folder/bundle.yaml" <<YAML
schema_version: 1
name: full-size
recipe: debug
code: {ranks: {repository: code}}
environment: {NCCL_ALGO: Ring}
required_environment: {NCCL_ALGO: Ring}
topology: {nodes: $nodes, gpus_per_node: $gpus}
launch: {tasks_per_node: $gpus, argv: ["{code.ranks}/rank_program", "{output}"]}
arms: {deterministic: {}}
outputs:
  - {kind: metrics, path: metrics}
  - {kind: trace, path: trace}
YAML
cat >"$folder/qualification.yaml" <<YAML
schema_version: 1
gates:
  full-size:
    kind: repeatability
    arm: deterministic
    runs: 2
    level: E1
    metrics: [lm loss]
    steps: 3
    run_limit: 20m
YAML
cd "$folder"
"$qualify" init >/dev/null
"$qualify" bundle seal --quiet bundle.yaml >/dev/null
"$qualify" reservation grant night --gate full-size
"$qualify" reservation check night --gate full-size --bundle full-size
start=$SECONDS
mark "granted; the gate starts"
code=0
"$qualify" run full-size --bundle full-size --reservation night >out 2>err || code=$?
cat out err
took=$((SECONDS - start))
mark "the gate ended after $took s"
((code == 0)) || failed "the gate ended with $code"

certificate=$(sed -n 's/^ *certificate \([0-9a-f]*\)$/\1/p' out)
[[ -n $certificate ]] || failed "no certificate"
"$qualify" cert verify "$certificate" >/dev/null || failed "the certificate does not verify"
mark "certificate verified"
for run in a b; do
  attempt=.qualify/runs/full-size-1/$run/attempt-1
  [[ $(wc -l <"$attempt/nodes.jsonl") == "$nodes" ]] || failed "run $run: not one record a node"
  [[ $(sort -u "$attempt/nodes.jsonl" | wc -l) == "$nodes" ]] || failed "run $run: records repeat"
  [[ $(find "$attempt/output/metrics" -type f | wc -l) == $((nodes * gpus)) ]] ||
    failed "run $run: not one file of metrics a task"
done
jobs=$(grep -c 'sched/backfill: _start_job\|sched: Allocate JobId\|_slurm_rpc_submit_batch_job: JobId' \
  "$folder/cluster/log/slurmctld.log")
((jobs >= 2)) || failed "the controller's log does not show the jobs"
submitted=$(grep -c '_slurm_rpc_submit_batch_job: JobId' "$folder/cluster/log/slurmctld.log")
((submitted == 2)) || failed "$submitted jobs were submitted, 2 were planned"
((took < limit)) || failed "it took $took s, more than $limit"
keep=
echo "full_size: $((nodes * gpus)) tasks on $nodes nodes, two runs and a certificate in $took s"
