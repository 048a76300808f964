#!/bin/sh
# task.sh FOLDER HIDDEN COMMAND...
#
# Starts one task of the workload through srun. Tells it its place as torchrun tells its workers, and
# notes in FOLDER the environment that the node's first task really gets (within the container, if
# there is one) without the variables that HIDDEN takes out ("-u NAME -u NAME"). Fixed text: what
# runs comes as arguments and is read by no shell.
folder=$1 hidden=$2
shift 2
export RANK="$SLURM_PROCID" LOCAL_RANK="$SLURM_LOCALID" NODE_RANK="$SLURM_NODEID"
export WORLD_SIZE="$SLURM_NTASKS"
if [ "$QUALIFY_TASKS_PER_NODE" = 1 ]; then
  export PET_NODE_RANK="$SLURM_NODEID"
fi
if [ "$SLURM_LOCALID" = 0 ]; then
  # shellcheck disable=SC2086
  env $hidden env -0 >"$folder/$SLURMD_NODENAME.environment"
fi
exec "$@"
