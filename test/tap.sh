#!/bin/sh
# Runs a command that is, or runs, a TAP test, in a directory of its own:
#
#   sh test/tap.sh DIRECTORY COMMAND [ARGUMENT...]
#
# From the caller: WORK and PG_CONFIG, as test/copy.sh sets them; the extension
# was installed in $WORK/install.

set -eu

directory=$1
shift

pgxs_test=$(dirname "$("$PG_CONFIG" --pgxs)")/../test

# PostgreSQL::Test asks for TESTDIR, from version 16 on for the other two
export TESTDIR="$directory" TESTDATADIR="$directory/tmp_check" \
    TESTLOGDIR="$directory/tmp_check/log" \
    PG_REGRESS="$pgxs_test/regress/pg_regress" SEQINBOX_DESTDIR="$WORK/install" \
    PERL5LIB="$pgxs_test/perl:test/perl"
exec "$@"
