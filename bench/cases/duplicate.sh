# What a duplicate costs, against a message that is new, and against a bare
# look-up of the primary key in C. Commits are not durable and four connections
# keep the processors busy, so that these decide.

. bench/receivers.sh

# run_again INBOX SCRIPT: all deliveries of the turn before once more
run_again()
{
    turn=$((turn - 1))
    pgbench_in "$1" "$2"
    expect "$(transactions)" "SELECT count(*) FROM $1.sequential_inbox_idempotence"
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
    fill seqinbox -v instances="$connections" -f bench/sql/instances.sql
    pgbench_in seqinbox claim
    latency
}

claim_duplicate()
{
    run_again seqinbox claim
}

# a call for each statement
try_claim()
{
    pgbench_in seqinbox lookup_try_claim
    latency
}

spi_lookup()
{
    pgbench_in seqinbox lookup_spi
    latency
}

# a thousand calls for each statement: what the function itself costs
try_claim_alone()
{
    pgbench_in seqinbox loop_try_claim
    latency | awk '{ print $1 / 1000 }'
}

spi_lookup_alone()
{
    pgbench_in seqinbox loop_spi
    latency | awk '{ print $1 / 1000 }'
}

settings='-c synchronous_commit=off'
connections=4
duration="-t $((seconds * 2000))"
variant='new or not'
compare "$variant" us/message receive_new receive_duplicate claim_new claim_duplicate
goal "$variant" receive_duplicate '<=' 0.6 receive_new
goal "$variant" claim_duplicate '<=' 0.6 claim_new

fresh_inbox seqinbox
fill seqinbox -v instances=1 -f bench/sql/instances.sql -f bench/sql/claimed.sql
sql -c "CREATE FUNCTION spi_lookup(text, text) RETURNS boolean
    AS '$WORK/spi_lookup.so' LANGUAGE C STRICT"
duration="-T $seconds"
variant='look-ups'
compare "$variant" us/message spi_lookup try_claim spi_lookup_alone try_claim_alone
goal "$variant" try_claim '<=' 1.2 spi_lookup
goal "$variant" try_claim_alone '<=' 1.2 spi_lookup_alone
