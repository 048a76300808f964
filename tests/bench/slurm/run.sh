#!/usr/bin/env bash
# run.sh BENCH MODULE [RUNS [SECONDS]]
#
# Brings up a cluster of 16 nodes, fills it with RUNS (1,000) jobs in a reservation, of which 16 run at
# a time and the others wait, and watches them for SECONDS (60) while they come and go. Prints what
# watching costs and how many questions the controller counted.
set -euo pipefail
bench=$1 module=$2 runs=${3:-1000} seconds=${4:-60}
source_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
cluster=$source_folder/tests/support/slurm-cluster
folder=$(mktemp -d)
trap '"$cluster" down --dir "$folder/cluster" >/dev/null 2>&1; rm -rf "$folder"' EXIT
"$cluster" up --nodes 16 --gpus 8 --dir "$folder/cluster"
export SLURM_CONF=$folder/cluster/slurm.conf
scontrol create reservation reservationname=night users=root starttime=now duration=240 'nodes=gpu[0001-0016]' >/dev/null
cd "$folder"
for i in $(seq "$runs"); do
  sbatch --quiet --reservation=night --exclusive --nodes=1 --output=/dev/null \
    --job-name="qualify:bench:$i:bench$i" --comment="qualify nonce=bench$i" --wrap 'sleep 20'
done
sdiag --reset >/dev/null
"$bench" "$module" "$runs" "$seconds" "$folder"
echo "the controller's own count of questions by type (squeue's among them):"
sdiag | sed -n '/statistics by message type/,/^$/p' | grep -E 'JOB_INFO' || true
