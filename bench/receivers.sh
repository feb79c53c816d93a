# Contenders that take in deliveries, for several cases.

# run_receive INBOX SCRIPT: each delivery was claimed and recorded
run_receive()
{
    fresh_inbox "$1"
    pgbench_in "$1" "$2"
    expect "$(transactions)" "SELECT count(*) FROM $1.sequential_inbox_idempotence"
    expect "$(transactions)" "SELECT count(*) FROM $1.sequenced_message WHERE state = 'PROCESSED'"
    tps
}

seqinbox_receive()
{
    run_receive seqinbox receive
}

# with BEGIN and COMMIT around it, as a handler would need them
seqinbox_receive_in_block()
{
    run_receive seqinbox receive_block
}

client_side()
{
    run_receive client receive_client
}

plpgsql_receive()
{
    run_receive plpgsql receive_plpgsql
}
