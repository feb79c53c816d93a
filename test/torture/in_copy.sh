#!/bin/sh
# The torture run in the temporary copy. test/torture/run calls this.
#
# From there: WORK, the temporary directory; KEEP_IN, where the logs of a failed
# run are to stay; PG_CONFIG.

set -eu

cd "$WORK/source"
. test/servers.sh

running=
directory=$WORK/torture

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

for target in clean install
do
    make $target with_llvm=no DESTDIR="$WORK/install" >"$WORK/log" 2>&1 ||
        { cat "$WORK/log" >&2; exit 1; }
done

mkdir "$directory"
sh test/tap.sh "$directory" env --default-signal perl test/t/080_torture.pl "$@" &
running=$!
status=0
wait "$running" || status=$?
running=
if [ "$status" != 0 ]
then
    kept=$(mktemp -d "$KEEP_IN/seqinbox-torture-XXXXXX")
    cp -R "$directory/tmp_check/log/." "$kept" || :
    echo "logs: $kept"
fi
exit "$status"
