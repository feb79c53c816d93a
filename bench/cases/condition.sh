# seqinbox_receive of messages with a nested condition over ten predecessors,
# all of which have been processed, against the same in PL/pgSQL. Commits are not
# durable, so that the processor decides.

# run_condition INBOX SCRIPT: into a thousand contexts
run_condition()
{
    fresh_inbox "$1"
    fill "$1" -v instances=1000 -f bench/sql/instances.sql -f bench/sql/predecessors.sql
    pgbench_in "$1" "$2"
    expect "$(transactions)" "SELECT count(*) FROM $1.sequenced_message
        WHERE message_type = 'OrderDone' AND state = 'PROCESSED'"
    tps
}

seqinbox_receive()
{
    run_condition seqinbox condition
}

plpgsql_receive()
{
    run_condition plpgsql condition_plpgsql
}

settings='-c synchronous_commit=off'
for connections in 1 4
do
    variant="connections: $connections"
    compare "$variant" messages/s plpgsql_receive seqinbox_receive
    goal "$variant" seqinbox_receive '>=' 1.5 plpgsql_receive
done
