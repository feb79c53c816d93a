#!/bin/sh
# Runs one Perl test with arguments, for as long as it takes. The commands for
# long runs (test/hostile/run, test/sqlsmith/run) call this in the temporary
# copy:
#
#   test/long.sh FILE [ARGUMENT...]
#
# From run_in_copy: WORK, the temporary directory; KEEP_IN, where the logs of a
# failed run are to stay; PG_CONFIG, and its directory in PATH.

set -eu

cd "$WORK/source"

running=
destdir=$WORK/install
pgxs_test=$(dirname "$("$PG_CONFIG" --pgxs)")/../test

# The test stops its servers itself when it ends, whichever way it ends.
clean_up()
{
    trap '' HUP INT TERM
    if [ -n "$running" ]
    then
        kill "$running" 2>/dev/null && wait "$running" || :
    fi
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

if ! make -s clean >"$WORK/log" 2>&1 ||
    ! make -s install with_llvm=no DESTDIR="$destdir" >"$WORK/log" 2>&1
then
    cat "$WORK/log" >&2
    exit 1
fi

# PostgreSQL::Test asks for TESTDIR, from version 16 on for the other two
env --default-signal TESTDIR="$WORK" TESTDATADIR="$WORK/tmp_check" \
    TESTLOGDIR="$WORK/tmp_check/log" \
    PG_REGRESS="$pgxs_test/regress/pg_regress" SEQINBOX_DESTDIR="$destdir" \
    perl -I "$pgxs_test/perl" -I test/perl "$@" &
running=$!
status=0
wait "$running" || status=$?
running=
if [ "$status" != 0 ]
then
    kept=$(mktemp -d "$KEEP_IN/seqinbox-logs-XXXXXX")
    cp -R "$WORK/tmp_check/log/." "$kept"
    echo "logs: $kept"
fi
exit "$status"
