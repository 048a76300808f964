#!/usr/bin/env bash
# container.sh QUALIFY RANK-PROGRAM SOURCE-FOLDER SPANK-PLUGIN
#
# The container form really passes through srun: a SPANK plugin with the options of pyxis leaves what
# each task was given. And what `reservation check` and `grant` say on a real controller.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../support/project.sh"
qualify=$1 rank_program=$2 source_folder=$3 plugin=$4
folder=$(mktemp -d)
cluster=$source_folder/tests/support/slurm-cluster
trap '"$cluster" down --dir "$folder/cluster" >/dev/null 2>&1' EXIT
failed() {
  echo "FAILED: $1 (folder: $folder)" >&2
  exit 1
}
expect() { # expect EXIT-CODE COMMAND…: output in $folder/said
  local code=0 wanted=$1
  shift
  "$@" >"$folder/said" 2>&1 || code=$?
  ((code == wanted)) || { cat "$folder/said" >&2; failed "'$*' ended with $code, not $wanted"; }
}
said() { grep -qF -- "$1" "$folder/said" || { cat "$folder/said" >&2; failed "not said: $1"; }; }

"$cluster" up --nodes 4 --gpus 8 --dir "$folder/cluster" --spank "$plugin"
export SLURM_CONF=$folder/cluster/slurm.conf
reserve() { scontrol create reservation "reservationname=$1" starttime=now duration=120 "${@:2}" >/dev/null; }
reserve night users=root 'nodes=gpu[0001-0004]'
isolate

mkdir "$folder/code" "$folder/image" "$folder/data"
cp "$rank_program" "$folder/code/rank_program"
commit_code
echo text >"$folder/image/file"
mksquashfs "$folder/image" "$folder/image.sqsh" -quiet -no-progress >/dev/null
echo tokens >"$folder/data/corpus"
cat >"$folder/bundle.yaml" <<'YAML'
schema_version: 1
name: contained
recipe: debug
code: {ranks: {repository: code}}
container: {kind: sqsh, file: image.sqsh}
data: {corpus: {path: data}}
environment: {NCCL_ALGO: Ring, GREETING: "two words; $(not a shell)"}
required_environment: {NCCL_ALGO: Ring}
passed_environment: [API_TOKEN]
topology: {nodes: 4, gpus_per_node: 8}
launch:
  tasks_per_node: 2
  argv: ["{code.ranks}/rank_program", "{output}", --environment, "{output}/environment"]
arms: {deterministic: {}}
outputs: [{kind: metrics, path: metrics}, {kind: trace, path: trace}]
YAML
cat >"$folder/qualification.yaml" <<'YAML'
schema_version: 1
gates:
  contained: {kind: repeatability, arm: deterministic, runs: 2, metrics: [lm loss], run_limit: 5m}
YAML
cd "$folder"
"$qualify" init >/dev/null
"$qualify" bundle seal --quiet bundle.yaml >/dev/null

# What stands against a start: all of it, each with its fact; nothing is granted yet.
scontrol update nodename=gpu0002 state=drain 'reason=bad NVLink'
expect 3 "$qualify" reservation check night --gate contained
said 'is not granted to gate contained'
said "node gpu0002 is drained: 'bad NVLink"
said '24 of 32 GPUs usable'
expect 3 "$qualify" reservation check night --gate contained --json
said '"code": "node-unusable"'
scontrol update nodename=gpu0002 state=resume
for _ in $(seq 300); do
  [[ $(sinfo -h -N -o %T | grep -cx idle) == 4 ]] && break
  sleep 0.1
done
# Shapes that cannot keep the promise get no grant; reservations for others say so when asked.
reserve loose users=root nodecnt=1 flags=flex,overlap
expect 3 "$qualify" reservation grant loose --gate contained
said 'flag FLEX'
said 'neither SPEC_NODES nor STATIC'
scontrol delete reservation=loose
scontrol delete reservation=night
reserve theirs users=nobody 'nodes=gpu[0001-0004]'
expect 0 "$qualify" reservation grant theirs --gate contained
expect 3 "$qualify" reservation check theirs --gate contained
said 'Access denied to requested'
expect 3 "$qualify" run contained --bundle contained --reservation theirs
said 'the bundle passes API_TOKEN at launch, but it is not set'
export API_TOKEN=hunter2
expect 3 "$qualify" run contained --bundle contained --reservation theirs
said 'Access denied to requested'
scontrol delete reservation=theirs
reserve night users=root 'nodes=gpu[0001-0004]'
[[ -z $(squeue -h -t all -o %j | grep '^qualify' || true) ]] || failed "something was submitted"

expect 0 "$qualify" reservation grant night --gate contained
expect 0 "$qualify" reservation check night --gate contained
said 'nothing stands against a start'

# A login shell's options for srun must not reach the job.
export SLURM_NTASKS=1 SRUN_CONTAINER=other SLURM_CPU_BIND=none SBATCH_EXCLUSIVE=user
"$qualify" run contained --bundle contained --reservation night
attempt=.qualify/runs/contained-2/a/attempt-1
given=$attempt/output/environment
has() { grep -qxF -- "$1" "$given" || { cat "$given" >&2; failed "the task was not given: $1"; }; }
image=$(readlink -f .qualify/store/blobs/sha256/"$(sha256sum image.sqsh | cut -d' ' -f1)")
has "QUALIFY_TEST_CONTAINER_IMAGE=$image"
has "QUALIFY_TEST_CONTAINER_MOUNTS=$PWD/$attempt:$PWD/$attempt,$PWD/data:$PWD/data:ro"
has "QUALIFY_TEST_CONTAINER_WORKDIR=$PWD/$attempt/output"
has 'QUALIFY_TEST_CONTAINER_NO_HOME=yes'
has 'QUALIFY_TEST_CONTAINER_ENV=API_TOKEN,GREETING,NCCL_ALGO'
has "GREETING=two words; \$(not a shell)"
has 'NCCL_ALGO=Ring'
has 'API_TOKEN=hunter2'
has 'WORLD_SIZE=8'
if grep -q '^SRUN_CONTAINER=\|^SBATCH_EXCLUSIVE=' "$given"; then failed "options of the login shell arrived"; fi
# The secret is nowhere else: neither in records nor in evidence. What the workload itself wrote out,
# in either run, is its own doing, and is kept as evidence like all that it leaves.
own=$(sha256sum .qualify/runs/contained-2/?/attempt-1/output/environment | cut -d' ' -f1 | paste -sd'|')
if grep -rlF hunter2 .qualify | grep -v '/output/environment$' | grep -vE "$own" | grep -q .; then
  grep -rlF hunter2 .qualify >&2
  failed "a passed value was recorded"
fi
grep -q '"QUALIFY_TEST_CONTAINER_IMAGE"' "$attempt/nodes.jsonl" ||
  failed "the environment within the container was not recorded"
cd /
rm -rf "$folder/code"
echo "container: all as it must be"
