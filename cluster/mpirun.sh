#!/bin/bash
# mpirun that lets ranks write a checkpoint: mpirun.sh ARGUMENTS… takes the arguments of mpirun.
# On INT and TERM, mpirun itself ends its ranks after one second, which may be in the middle of a step. It passes USR1 on to them. In a session
# of its own, it does not get what a terminal or `timeout` sends to a group of processes.
setsid mpirun "$@" &
mpirun=$!
trap 'kill -USR1 "$mpirun"' INT TERM
while
    wait "$mpirun"
    code=$?
    kill -0 "$mpirun" 2> /dev/null
do :; done
exit "$code"
