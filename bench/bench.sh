#!/bin/sh
# The benchmark itself. bench/run calls this in the temporary copy, with the
# names of cases. A case is a file in bench/cases, which is read with the
# functions that are defined here.
#
# From bench/run: WORK, the temporary directory; PG_CONFIG, and its directory
# in PATH; rounds, seconds, quick (yes or empty) and command, how it was called.

set -eu

cd "$WORK/source"

log=$WORK/log
data=$WORK/data
destdir=$WORK/install
results=$WORK/results       # case, variant, unit, contender, round, value
goals=$WORK/goals           # case, variant, contender, operator, limit, contender

export PGHOST="$TMPDIR" PGPORT=5432 PGUSER=postgres PGDATABASE=bench

clean_up()
{
    trap '' HUP INT TERM
    stop_server
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

# quietly COMMAND...: its output is in $log, and shown only if it fails
quietly()
{
    "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
}

build()
{
    quietly make -s clean
    quietly make -s -j 2 install DESTDIR="$destdir"
    # shellcheck disable=SC2046 # several words
    quietly gcc -O2 -fPIC -shared -I "$("$PG_CONFIG" --includedir-server)" \
        -o "$WORK/spi_lookup.so" bench/spi_lookup.c
}

stop_server()
{
    [ ! -e "$data/postmaster.pid" ] ||
        pg_ctl stop -s -m fast -D "$data" >/dev/null 2>&1 || :
}

start_server()
{
    quietly pg_ctl start -s -D "$data" -l "$WORK/server.log"
}

make_server()
{
    quietly initdb -D "$data" -U "$PGUSER" -A trust -E UTF8 --locale=C
    cat >>"$data/postgresql.conf" <<END
listen_addresses = ''
unix_socket_directories = '$PGHOST'
$(sh test/extension_conf "$destdir" "$PG_CONFIG")
shared_buffers = 1GB
END
    start_server
}

# sql [OPTION...]: psql, with statements from its input unless told otherwise
sql()
{
    psql -XAtq -v ON_ERROR_STOP=1 "$@"
}

fresh_database()
{
    dropdb --if-exists bench 2>/dev/null
    createdb
    sql -c 'CREATE EXTENSION seqinbox' -f bench/sql/plpgsql.sql
}

# fresh_inbox NAME: empty, with the sequence that the cases use
fresh_inbox()
{
    sql -v inbox="$1" -f bench/sql/inbox.sql >/dev/null
}

# fill INBOX OPTION...: psql, with the files that its options name
fill()
{
    inbox=$1
    shift
    sql -c "SET search_path = $inbox, public" "$@" >/dev/null
}

# in_inbox NAME COMMAND...: a client that uses this inbox
#
# A plan that is made while a table is empty shall not scan it for ever; the
# extension sees to that itself, so it must hold for the others too.
in_inbox()
{
    inbox=$1
    shift
    PGOPTIONS="-c search_path=$inbox,public -c enable_seqscan=off $settings" "$@"
}

# pgbench_in INBOX SCRIPT [OPTION...]: its report is in $log
#
# Variables of the scripts: n counts a client's transactions, and turn the turns
# of the case, so that no ID comes twice; network is the time in microseconds that
# a round trip takes.
pgbench_in()
{
    inbox=$1
    script=$2
    shift 2
    [ -z "$checkpoint" ] || sql -c CHECKPOINT
    # shellcheck disable=SC2086 # two words
    quietly in_inbox "$inbox" pgbench -n -M prepared $duration \
        -c "$connections" -j "$((connections > 2 ? 2 : connections))" \
        -D n=0 -D turn="$turn" -D network="$network" \
        -f "bench/sql/$script.sql" "$@"
    grep -q '^number of failed transactions: 0 ' "$log" || {
        cat "$log" >&2
        exit 1
    }
}

# transactions, tps and latency (in microseconds): from pgbench's report
transactions()
{
    sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' "$log"
}

tps()
{
    sed -n 's/^tps = \([0-9.]*\) .*/\1/p' "$log"
}

latency()
{
    tps | awk '{ print 1000000 / $1 }'
}

# expect COUNT QUERY: the work was done, all of it
expect()
{
    found=$(sql -c "$2")
    if [ "$found" != "$1" ]
    then
        echo "$1 expected, but $found: $2" >&2
        exit 1
    fi
}

# record CONTENDER VALUE
record()
{
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$case" "$variant" "$unit" \
        "$1" "$round" "$2" >>"$results"
}

# compare VARIANT UNIT CONTENDER...: each has its turn in each round
#
# A contender is a function that does its work and prints the result.
compare()
{
    variant=$1
    unit=$2
    shift 2
    for round in $(seq "$rounds")
    do
        for contender
        do
            turn=$((turn + 1))
            value=$("$contender")
            record "$contender" "$value"
        done
    done
}

# goal VARIANT CONTENDER OPERATOR LIMIT CONTENDER: what a ratio should be
goal()
{
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$case" "$@" >>"$goals"
}

# Nothing that a case sets is seen by another.
run_case()
{
    (
        connections=1
        duration="-T $seconds"
        turn=0
        checkpoint=before_each_turn
        network=0
        settings=
        . "bench/cases/$case.sh"
    )
}

for case
do
    if [ ! -e "bench/cases/$case.sh" ]
    then
        echo "there is no case \"$case\"" >&2
        exit 1
    fi
done
[ $# -gt 0 ] ||
    set -- claim receive network condition batch duplicate next size library pgq \
        housekeeping memory instructions

# on two processors, however many there are
taskset -cp 0,1 $$ >/dev/null 2>&1 || :

build
make_server
server_version=$(sql -d postgres -c 'SHOW server_version')
processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
processors=$(nproc)
export server_version processor processors
echo "PostgreSQL $server_version, $processors processors: $processor"
: >"$results"
: >"$goals"
for case
do
    fresh_database
    run_case
    perl bench/report.pl "$results" "$goals" "$case"
    perl bench/report.pl --json "$results" "$goals" >"$WORK/results.json"
done
