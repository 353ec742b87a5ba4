#!/bin/bash
# Trains a plan on several ranks: sbatch cluster/slurm.sh PLAN.json RUN_FOLDER
# The same command again continues a run that ended early.
#SBATCH --job-name=dp-training
#SBATCH --ntasks=8
#SBATCH --cpus-per-task=8
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
set -eu
# A rank that is killed must leave no lock behind.
export PMIX_MCA_gds=hash
plan=$1
run=$2
resume=
if [ -e "$run/ledger.jsonl" ]; then resume=--resume; fi
# --kill-on-bad-exit: one lost rank ends all. --signal=TERM@120: a checkpoint two minutes before the time limit.
exec srun --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" \
    "${TRAINER:-trainer-native}" --plan "$plan" --out "$run" $resume
