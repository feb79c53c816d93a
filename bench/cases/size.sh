# What a message costs, by how many claims are there already, and by how many
# message types are declared.

few=10000
many=10000000
few_types=10
many_types=100000
[ -z "$quick" ] || many=100000 many_types=1000

# run_new INBOX SCRIPT: claims that were not there before
run_new()
{
    claims="SELECT count(*) FROM $1.sequential_inbox_idempotence"
    before=$(sql -c "$claims")
    pgbench_in "$1" "$2"
    expect "$((before + $(transactions)))" "$claims"
    latency
}

# The few are made anew for each turn; the many hardly become more.
with_few_claims()
{
    fresh_inbox few
    fill few -v claims="$few" -f bench/sql/big.sql
    run_new few "$1"
}

with_many_claims()
{
    run_new many "$1"
}

few_claims()
{
    with_few_claims "receive$order"
}

many_claims()
{
    with_many_claims "receive$order"
}

bare_few_claims()
{
    with_few_claims "claim_bare$order"
}

bare_many_claims()
{
    with_many_claims "claim_bare$order"
}

# compare_claims VARIANT ORDER
compare_claims()
{
    order=$2
    compare "$1" us/message few_claims many_claims bare_few_claims bare_many_claims
    goal "$1" many_claims '<=' 1.1 few_claims
}

# The first change of a page after a checkpoint writes all of it to the log. Turns
# are short, so there is none between them; and a server that has run for more
# than some seconds has written most pages of the indexes already.
fresh_inbox many
fill many -v claims="$many" -f bench/sql/big.sql -c CHECKPOINT
checkpoint=
(
    settings='-c synchronous_commit=off'
    duration="-T $((seconds * 5))"
    with_many_claims receive >/dev/null
)
compare_claims "$few or $many claims, durable, random IDs" ''
compare_claims "$few or $many claims, durable, ascending IDs" _ordered
settings='-c synchronous_commit=off'
connections=4
compare_claims "$few or $many claims, not durable, random IDs" ''
compare_claims "$few or $many claims, not durable, ascending IDs" _ordered

few_types()
{
    pgbench_in few receive_types -D sequences="$((few_types / 10))"
    latency
}

many_types()
{
    pgbench_in many receive_types -D sequences="$((many_types / 10))"
    latency
}

for inbox in few many
do
    fresh_inbox "$inbox"
    eval "types=\$${inbox}_types"
    fill "$inbox" -v sequences="$((types / 10))" -f bench/sql/types.sql
done
variant="$few_types or $many_types types, not durable"
compare "$variant" us/message few_types many_types
goal "$variant" many_types '<=' 1.1 few_types
