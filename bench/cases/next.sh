# What it costs to hand out a message with seqinbox_next, by how many wait in
# its context. Commits are not durable, so that the processor decides.

total=10000

# drain COUNT: all contexts, in each of which so many messages wait
drain()
{
    fresh_inbox seqinbox
    fill seqinbox -v instances="$((total / $1))" -v waiting="$1" -f bench/sql/instances.sql \
        -f bench/sql/predecessors.sql -f bench/sql/waiting.sql
    pgbench_in seqinbox next -D waiting="$1"
    expect "$((total / $1 * 10 + total))" "SELECT count(*)
        FROM seqinbox.sequenced_message WHERE state = 'PROCESSED'"
    expect 0 'SELECT count(*) FROM seqinbox.buffered_message'
    latency
}

waiting_10()
{
    drain 10
}

waiting_100()
{
    drain 100
}

waiting_1000()
{
    drain 1000
}

waiting_10000()
{
    drain 10000
}

settings='-c synchronous_commit=off'
duration="-t $total"
compare 'one connection' us/message waiting_10 waiting_100 waiting_1000 waiting_10000
for count in 100 1000 10000
do
    goal 'one connection' "waiting_$count" '<=' 1.1 waiting_10
done
