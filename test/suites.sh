#!/bin/sh
# The suites of tests. test/run calls this in the temporary copy; a suite takes
# up every file that it finds in its place:
#
#   lint        the checks of Makefile.dev
#   regress     sql/*.sql with expected/*.out
#   isolation   test/isolation/specs/*.spec with test/isolation/expected/*.out
#   pgtap       test/pgtap/*.sql, each in a database of its own
#   tap         test/t/*.pl
#   examples    test/examples/*.sh, each with a server of its own, on which
#               PGDATABASE is an empty database
#
# A test that can't run here says why in the last line that it prints, and exits
# with 77; a TAP test skips all.
#
# From test/run: WORK, the temporary directory; KEEP_IN, where the outputs of
# failed tests are to stay; PG_CONFIG, and its directory in PATH.

set -eu

suites=${SUITES:-lint regress isolation pgtap tap examples}
time_limit=${TEST_SECONDS:-900}    # for a test that hangs

cd "$WORK/source"
. test/servers.sh

passed=0
failed=0
skipped=0
kept=
running=
log=$WORK/output
destdir=$WORK/install
server=$WORK/server
pgxs=$("$PG_CONFIG" --pgxs)

export PGHOST="$TMPDIR" PGPORT=5432 PGUSER=postgres

clean_up()
{
    trap '' HUP INT TERM
    if [ -n "$running" ]
    then
        kill "$running" 2>/dev/null && wait "$running" || :
        kill -s KILL -- "-$running" 2>/dev/null || :
    fi
    stop_servers "$WORK"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

# run COMMAND...: its output into $log; all that it starts ends with it
run()
{
    timeout -k 10 "$time_limit" env --default-signal "$@" >"$log" 2>&1 &
    running=$!
    status=0
    wait "$running" || status=$?
    kill -s KILL -- "-$running" 2>/dev/null || :
    running=
    [ "$status" != 124 ] || echo "no end within $time_limit seconds" >>"$log"
    return "$status"
}

# fail SUITE TEST [FILE...]: keeps its output and these files
fail()
{
    failed=$((failed + 1))
    [ -n "$kept" ] || kept=$(mktemp -d "$KEEP_IN/seqinbox-test-XXXXXX")
    output=$kept/$1/$2
    mkdir -p "$output"
    echo "FAILED: $1/$2  output: $output"
    shift 2
    for file in "$log" "$@"
    do
        [ ! -e "$file" ] || cp -R "$file" "$output" || :
    done
}

fresh_server()
{
    stop_servers "$server"
    rm -rf "$server"
    initdb -D "$server" -U "$PGUSER" -A trust -E UTF8 --locale=C -N >"$log"
    cat >>"$server/postgresql.conf" <<END
listen_addresses = ''
unix_socket_directories = '$PGHOST'
$(sh test/extension_conf "$destdir" "$PG_CONFIG")
max_prepared_transactions = 10
fsync = off
END
    pg_ctl start -s -D "$server" -l "$server/server.log"
}

# file_names DIRECTORY SUFFIX
file_names()
{
    [ ! -d "$1" ] || find "$1" -maxdepth 1 -name "*$2" -exec basename {} "$2" \; |
        LC_ALL=C sort
}

# Per suite: the names of its tests; how to run one; what to keep if it fails.

lint_tests()
{
    make -s print-LINT
}

lint_test()
{
    run make -s "lint-$1"
}

# As in a plain "make installcheck", the tests of a suite share a database.
installcheck()
{
    variable=$1 other_variable=$2 test=$3
    set -- "$variable=$test" "$other_variable=" EXTRA_REGRESS_OPTS="$existing"
    existing=--use-existing
    run make -s installcheck "$@"
}

regress_tests()
{
    make -s print-REGRESS
}

regress_test()
{
    outputs="regression.diffs results/$1.out"
    installcheck REGRESS ISOLATION "$1"
}

isolation_tests()
{
    make -s print-ISOLATION
}

isolation_test()
{
    # Debian's packages have it from version 14 on
    if [ ! -x "${pgxs%/makefiles/*}/test/isolation/pg_isolation_regress" ]
    then
        reason='the server came without pg_isolation_regress'
        return 77
    fi
    outputs="test/isolation/regression.diffs test/isolation/results/$1.out"
    installcheck ISOLATION REGRESS "$1"
}

pgtap_tests()
{
    file_names test/pgtap .sql
}

pgtap_test()
{
    run env PGDATABASE="$1" sh -ec '
        createdb
        psql -q -c "CREATE EXTENSION pgtap" -c "CREATE EXTENSION seqinbox"
        pg_prove -v "$1"' pgtap "test/pgtap/$1.sql"
}

tap_tests()
{
    file_names test/t .pl
}

tap_test()
{
    directory=$WORK/tap
    outputs=$directory/tmp_check/log
    stop_servers "$directory"
    rm -rf "$directory"
    mkdir "$directory"
    run sh test/tap.sh "$directory" prove -v "test/t/$1.pl" || return 1
    reason=$(sed -n 's|^test/t/.* skipped: ||p' "$log")
    [ -z "$reason" ] || return 77
}

examples_tests()
{
    file_names test/examples .sh
}

examples_test()
{
    fresh_server && createdb seqinbox &&
        run env PGDATABASE=seqinbox "test/examples/$1.sh"
}

tests=
if [ $# -gt 0 ]
then
    suites=$1
    shift
    tests=$*
fi

make -s clean
for suite in $suites
do
    case $suite in
        lint)
            ;;
        regress | isolation | pgtap | tap | examples)
            if [ ! -d "$destdir" ] && ! run make -s -j 2 install DESTDIR="$destdir"
            then
                fail build install
                break
            fi
            ;;
        *)
            echo "there is no suite \"$suite\"" >&2
            exit 1
            ;;
    esac

    case $suite in
        regress | isolation | pgtap)
            fresh_server
            existing=
            ;;
    esac

    echo "$suite:"
    for test in ${tests:-$("${suite}_tests")}
    do
        outputs=
        reason=
        result=0
        "${suite}_test" "$test" || result=$?
        case $result in
            0)
                passed=$((passed + 1))
                echo "passed: $suite/$test"
                ;;
            77)
                skipped=$((skipped + 1))
                [ -n "$reason" ] || reason=$(tail -n 1 "$log")
                echo "skipped: $suite/$test  $reason"
                ;;
            *)
                # shellcheck disable=SC2086 # several names
                fail "$suite" "$test" $outputs "$server/server.log"
                ;;
        esac
    done
done

# What gcov counted, see "make coverage": first the lines, then the branches.
# Not counted are those of lines with these macros, most of whose branches are
# the server's.
report_coverage()
{
    macros='ereport|elog|document_fault|CHECK_FOR_INTERRUPTS|foreach|Assert|Min\('
    macros="$macros|PG_(TRY|CATCH|FINALLY|END_TRY|GETARG|RETURN|FREE)|VAR(SIZE|DATA)_ANY"
    set -- gcovr --filter src/ --exclude-branches-by-pattern ".*($macros).*"
    "$@" --fail-under-line 95 && "$@" --branches --fail-under-branch 90
}

if [ -n "${COVERAGE-}" ]
then
    stop_servers "$WORK"
    report_coverage >"$WORK/coverage" 2>&1 || failed=$((failed + 1))
fi

others=
[ "$skipped" = 0 ] || others=", $skipped skipped"
echo "$passed passed, $failed failed$others"
[ "$failed" = 0 ] && [ $((passed + skipped)) -gt 0 ]
