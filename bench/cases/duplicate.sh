# What a duplicate costs, against a message that is new, and against a bare
# look-up of the primary key in C. Commits are not durable, so that the processor
# decides.

. bench/receivers.sh

# run_again INBOX SCRIPT: all deliveries of the run before once more
run_again()
{
    claims="SELECT count(*) FROM $1.sequential_inbox_idempotence"
    count=$(sql -c "$claims")
    duration="-t $count"
    pgbench_in "$1" "$2"
    expect "$count" "$claims"
    latency
}

receive_new()
{
    run_receive seqinbox receive >/dev/null
    latency
}

receive_duplicate()
{
    run_again seqinbox receive
}

claim_new()
{
    fresh_inbox seqinbox
    sql -c "$seed"
    pgbench_in seqinbox claim
    latency
}

claim_duplicate()
{
    run_again seqinbox claim
}

settings='-c synchronous_commit=off'
compare 'duplicate or new' us/message receive_new receive_duplicate claim_new claim_duplicate
goal 'duplicate or new' receive_duplicate '<=' 0.6 receive_new
goal 'duplicate or new' claim_duplicate '<=' 0.6 claim_new
