#!/bin/sh
# task.sh FOLDER HIDDEN COMMAND...
#
# Runs one task of the workload below srun. Tells it its place as torchrun tells its workers, and
# notes in FOLDER the environment that the node's first task really gets (within the container, if
# there is one) without the variables that HIDDEN takes out ("-u NAME -u NAME"). Fixed text: what
# runs comes as arguments and is read by no shell.
#
# When the command fails by itself, "CODE RANK NODE" is noted in FOLDER/first-failure by whichever
# task is the first of all: srun ends the others then, and reports the highest code of any. A task
# that was told to end did not fail by itself.
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
# Signals reach the command by themselves, and what it makes of them is its own affair: this shell
# only has to outlive it. A trap, unlike an ignored signal, is not handed on.
told=
trap 'told=yes' HUP INT QUIT TERM
trap : USR1 USR2 ALRM
"$@"
code=$?
if [ "$code" != 0 ] && [ -z "$told" ]; then
  # Made once (O_EXCL), by one of all tasks.
  (set -C && echo "$code $SLURM_PROCID $SLURMD_NODENAME" >"$folder/first-failure") 2>/dev/null
fi
exit "$code"
