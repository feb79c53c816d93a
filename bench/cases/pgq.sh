# PgQ, for its speed: it does not recognise duplicates. While connections insert
# events, a consumer takes batches of them.

. bench/receivers.sh

pgq()
{
    sql -c 'DROP EXTENSION IF EXISTS pgq CASCADE' -c 'CREATE EXTENSION pgq' -f bench/sql/pgq.sql \
        >/dev/null 2>&1
    pgbench -n -M prepared -T "$((seconds + 1))" -f bench/sql/pgq_consume.sql >"$log.consumer" 2>&1 &
    consumer=$!
    pgbench_in public pgq_insert
    rate=$(tps)
    wait "$consumer" || { cat "$log.consumer" >&2; exit 1; }
    expect "$(transactions)" 'SELECT sum(events) FROM consumed'
    echo "$rate"
}

for connections in 1 4 16
do
    compare "connections: $connections" messages/s pgq seqinbox_receive
done
