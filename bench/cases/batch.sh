# seqinbox_receive_batch of 100 messages, on one connection and with durable
# commits, against COPY of the same rows into the same tables, and against a
# client-side inbox that takes them one by one.

. bench/receivers.sh

# run_batches INBOX CONTENDER
run_batches()
{
    fresh_inbox "$1"
    sql -c CHECKPOINT
    quietly in_inbox "$1" python3 -B bench/batch.py "$2" "$seconds"
    read -r messages per_second <"$log"
    expect "$messages" "SELECT count(*) FROM $1.sequential_inbox_idempotence"
    expect "$messages" "SELECT count(*) FROM $1.sequenced_message WHERE state = 'PROCESSED'"
    echo "$per_second"
}

copy()
{
    run_batches copy copy
}

seqinbox_receive_batch()
{
    run_batches seqinbox receive_batch
}

variant='100 messages'
compare "$variant" messages/s copy seqinbox_receive_batch client_side
goal "$variant" seqinbox_receive_batch '>=' 0.8 copy
goal "$variant" seqinbox_receive_batch '>=' 20 client_side
