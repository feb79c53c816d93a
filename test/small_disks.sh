#!/bin/sh
# Runs a command with two small disks, which nobody else sees, for the tests
# that fill one:
#
#   sh test/small_disks.sh DIRECTORY COMMAND [ARGUMENT...]
#
# They are DIRECTORY/1 and DIRECTORY/2, and SEQINBOX_SMALL_DISKS is DIRECTORY.
# Whoever may not mount them, as in some containers, runs the command without.

set -eu

directory=$1
shift

mkdir -p "$directory/1" "$directory/2"
if ! unshare --mount mount -t tmpfs none "$directory/1" 2>/dev/null
then
    exec "$@"
fi

# shellcheck disable=SC2016 # that shell expands them
SEQINBOX_SMALL_DISKS=$directory exec unshare --mount sh -euc '
    for disk in 1 2
    do
        mount -t tmpfs -o size=320m,mode=1777 none "$SEQINBOX_SMALL_DISKS/$disk"
    done
    exec "$@"' sh "$@"
