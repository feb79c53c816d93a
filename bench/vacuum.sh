#!/bin/sh
# Measures what vacuum and index settings do to an inbox:
#
#   sh bench/vacuum.sh [SECONDS]
#
# The server is the one that the PG* variables lead to; the extension is
# installed there, and the role may create databases. All work is done in a
# database of its own, which is dropped in the end.
#
# Two consumers take in messages of new contexts for SECONDS (60), beside a
# housekeeping that removes them at the rate they come: what an inbox sees in
# weeks, within a minute. So that autovacuum looks often enough for that, set
# autovacuum_naptime = 1s on the server.

set -eu

seconds=${1:-60}
retention=30
many=200000

PGDATABASE=${PGDATABASE:-postgres}
export PGDATABASE
home=$PGDATABASE
bench=seqinbox_vacuum
created=
housekeeping=
work=$(mktemp -d)

clean_up()
{
    trap '' HUP INT TERM
    [ -z "$housekeeping" ] || kill "$housekeeping" 2>/dev/null || :
    [ -z "$created" ] || dropdb --maintenance-db="$home" --force "$bench"
    rm -rf "$work"
}

sql()
{
    psql -X -q -v ON_ERROR_STOP=1 "$@"
}

# The scripts of pgbench

write_scripts()
{
    # One message of five comes before its predecessor.
    cat >"$work/consume.sql" <<'SCRIPT'
\set context random(1, 1000000000000)
\set early random(1, 5)
\if :early = 1
SELECT outcome FROM seqinbox_receive('B', md5(:context::text), md5(:context::text), repeat('x', 200)::bytea,
    header_names => ARRAY['source'], header_values => ARRAY['shop']::bytea[]);
SELECT sequence_instance_id AS instance FROM seqinbox_receive('A', md5(:context::text), md5(:context::text), repeat('x', 200)::bytea) \gset
SELECT id FROM seqinbox_next(:instance);
SELECT id FROM seqinbox_next(:instance);
\else
SELECT outcome FROM seqinbox_receive('A', md5(:context::text), md5(:context::text), repeat('x', 200)::bytea);
SELECT outcome FROM seqinbox_receive('B', md5(:context::text), md5(:context::text), repeat('x', 200)::bytea);
\endif
SCRIPT
    cat >"$work/housekeeping.sql" <<'SCRIPT'
CALL seqinbox_housekeeping('0');
INSERT INTO public.sample SELECT relname, n_live_tup, n_dead_tup FROM pg_stat_user_tables WHERE schemaname = 'inbox';
\sleep 1 s
SCRIPT
}

# start_housekeeping SECONDS
start_housekeeping()
{
    pgbench -n -T "$1" -f "$work/housekeeping.sql" >"$work/housekeeping" 2>&1 &
    housekeeping=$!
}

# Its last run ends before the inbox is dropped.
await_housekeeping()
{
    wait "$housekeeping"
    housekeeping=
}

# consume SECONDS
consume()
{
    pgbench -n -c 2 -j 2 -M prepared -T "$1" -f "$work/consume.sql"
}

# The database

create_database()
{
    createdb --maintenance-db="$home" "$bench"
    created=1
    PGDATABASE=$bench
    sql <<SQL
CREATE EXTENSION seqinbox;
ALTER DATABASE $bench SET search_path = inbox;
CREATE TABLE public.sample (name name, live bigint, dead bigint);
CREATE TABLE public.result (run int, setting text, tps numeric, name name,
    table_size bigint, index_size bigint, live numeric, dead numeric, vacuums bigint, updated bigint, hot bigint);
SQL
}

declare_sequence()
{
    sql -v retention="$1" <<'SQL' >/dev/null
SELECT seqinbox_declare(format('{"sequences": [{"name": "AB", "retentionPeriod": "%s", "messages": [
    {"type": "A"}, {"type": "B", "releaseCondition": {"predecessor": "A"}}]}]}', :'retention')::jsonb);
SQL
}

# create_inbox [SETTING TABLE...]
create_inbox()
{
    sql <<'SQL' >/dev/null
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS inbox CASCADE;
SELECT seqinbox_create_inbox('inbox');
SQL
    declare_sequence "$retention seconds"
    [ $# -gt 0 ] || return 0
    setting=$1
    shift
    for table in "$@"
    do
        sql -c "ALTER TABLE $table SET ($setting)"
    done
}

# What is measured

run=0

# measure [SETTING TABLE...]
measure()
{
    run=$((run + 1))
    echo "run $run: ${1:-defaults}" >&2
    create_inbox "$@"
    start_housekeeping $((retention + seconds + 1))
    consume "$retention" >/dev/null
    sql -c 'TRUNCATE public.sample'
    tps=$(consume "$seconds" | sed -n 's/^tps = \([0-9]*\).*/\1/p')
    await_housekeeping
    sql -v run="$run" -v setting="${1:-defaults}" -v tps="$tps" <<'SQL'
INSERT INTO public.result
SELECT :run, :'setting', :'tps', relname, pg_table_size(relid), pg_indexes_size(relid),
    (SELECT avg(live) FROM public.sample WHERE name = relname),
    (SELECT avg(dead) FROM public.sample WHERE name = relname), autovacuum_count, n_tup_upd, n_tup_hot_upd
FROM pg_stat_user_tables
WHERE schemaname = 'inbox' AND relname IN ('sequence_instance', 'sequenced_message',
    'sequential_inbox_idempotence', 'buffered_message', 'message_header');
SQL
}

report()
{
    sql -P footer=off <<'SQL'
SELECT run, setting, tps, name, pg_size_pretty(table_size) AS table, pg_size_pretty(index_size) AS indexes,
    round(live) AS live, round(dead) AS dead, vacuums, updated, round(100.0 * hot / nullif(updated, 0)) AS "HOT %"
FROM public.result ORDER BY run, name;
SQL
}

# fill FROM TO
fill()
{
    sql -v from="$1" -v to="$2" <<'SQL' >/dev/null
SELECT count(*) FROM generate_series(:from, :to) n, md5(n::text) m, seqinbox_receive('A', m, m, NULL);
SELECT count(*) FROM generate_series(:from, :to) n, md5(n::text) m, seqinbox_receive('B', m, m, NULL);
SQL
}

# size WHEN
size()
{
    sql -A -t -v when="$1" <<'SQL'
SELECT format('%-40s claims %8s, primary key %8s', :'when',
    pg_size_pretty(pg_table_size('sequential_inbox_idempotence')),
    pg_size_pretty(pg_table_size('sequential_inbox_idempotence_pkey')));
SQL
}

remove_many()
{
    create_inbox autovacuum_enabled=off sequence_instance sequenced_message sequential_inbox_idempotence
    fill 1 "$many"
    declare_sequence '7 days'
    fill $((many + 1)) $((many + many / 10))
    size "$many instances and a tenth more"
    sleep "$retention"
    sql -o /dev/null -c 'VACUUM (ANALYZE)' -c "CALL seqinbox_housekeeping('0')"
    size "$many removed"
    sql -c 'VACUUM (ANALYZE) sequential_inbox_idempotence'
    size "after VACUUM"
    sql -c 'REINDEX INDEX CONCURRENTLY sequential_inbox_idempotence_pkey'
    size "after REINDEX CONCURRENTLY"
}

trap clean_up EXIT
trap 'exit 1' HUP INT TERM

write_scripts
create_database
sql -A -t -c "SELECT version()" -c "SELECT 'autovacuum_naptime = ' || current_setting('autovacuum_naptime')"

five='sequence_instance sequenced_message sequential_inbox_idempotence buffered_message message_header'
for _ in 1 2
do
    measure
    # shellcheck disable=SC2086 # several names
    measure autovacuum_vacuum_scale_factor=0.02 $five
    measure fillfactor=85 sequence_instance sequenced_message
done
report
remove_many
