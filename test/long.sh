#!/bin/sh
# Runs one Perl test with arguments, for as long as it takes. The commands for
# long runs (test/torture/run, test/hostile/run, test/sqlsmith/run) call this in
# the temporary copy:
#
#   test/long.sh FILE [ARGUMENT...]
#
# From run_in_copy: WORK, the temporary directory; KEEP_IN, where the logs of a
# failed run are to stay; PG_CONFIG, and its directory in PATH.

set -eu

cd "$WORK/source"
. test/servers.sh

running=
directory=$WORK/long

clean_up()
{
    trap '' HUP INT TERM
    if [ -n "$running" ]
    then
        kill "$running" 2>/dev/null && wait "$running" || :
    fi
    stop_servers "$directory"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

if ! make -s clean >"$WORK/log" 2>&1 ||
    ! make -s install with_llvm=no DESTDIR="$WORK/install" >"$WORK/log" 2>&1
then
    cat "$WORK/log" >&2
    exit 1
fi

mkdir "$directory"
sh test/tap.sh "$directory" env --default-signal perl "$@" &
running=$!
status=0
wait "$running" || status=$?
running=
if [ "$status" != 0 ]
then
    kept=$(mktemp -d "$KEEP_IN/seqinbox-logs-XXXXXX")
    cp -R "$directory/tmp_check/log/." "$kept" || :
    echo "logs: $kept"
fi
exit "$status"
