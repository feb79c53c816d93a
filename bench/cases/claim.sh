# seqinbox_claim, with an instance and without, against the bare INSERT.

# run_claims INBOX SCRIPT: each connection with an instance of its own
run_claims()
{
    fresh_inbox "$1"
    fill "$1" -v instances="$connections" -f bench/sql/instances.sql
    pgbench_in "$1" "$2"
    expect "$(transactions)" "SELECT count(*) FROM $1.sequential_inbox_idempotence"
    tps
}

bare_insert()
{
    run_claims bare claim_bare
}

seqinbox_claim()
{
    run_claims seqinbox claim
}

seqinbox_claim_without_instance()
{
    run_claims seqinbox claim_window
}

for connections in 1 4 16
do
    variant="connections: $connections"
    compare "$variant" messages/s bare_insert seqinbox_claim seqinbox_claim_without_instance
    goal "$variant" seqinbox_claim '>=' 0.95 bare_insert
    goal "$variant" seqinbox_claim_without_instance '>=' 0.95 bare_insert
done
