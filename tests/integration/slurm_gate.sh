#!/usr/bin/env bash
# slurm_gate.sh QUALIFY TRAINER SOURCE-FOLDER
#
# A gate on a real Slurm: without a grant it is refused and nothing is submitted; with one it runs in
# the reservation and gets its certificate.
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
scontrol create reservation reservationname=night users=root starttime=now duration=60 "nodes=$nodes"

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
cd /
rm -rf "$folder/code"
echo "slurm_gate: all as it must be"
