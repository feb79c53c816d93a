# How many instructions a call takes, counted by callgrind in a single-user
# server: exact, so that small changes show. What is counted is the difference
# between many calls and a few, all in one statement.

variant='one call'
unit=instructions
round=1
few=50
many=250
calls=0         # so far: no call shall meet what another one left

# callgrind COUNT SQL: instructions in all
callgrind()
{
    echo "$2" | tr '\n' ' ' | sed -e "s/:first/$((calls + 1))/g" -e "s/:last/$((calls + $1))/g" |
        valgrind --tool=callgrind --callgrind-out-file=/dev/null \
            "$(command -v postgres)" --single -D "$data" -c search_path=seqinbox,public \
            -c enable_seqscan=off bench >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
    if grep -q 'ERROR:' "$log"
    then
        cat "$log" >&2
        exit 1
    fi
    sed -n 's/.* Collected : \([0-9]*\)$/\1/p' "$log"
}

# count NAME SQL [MESSAGES]: calls with numbers from :first to :last
count()
{
    less=$(callgrind "$few" "$2")
    calls=$((calls + few))
    more=$(callgrind "$many" "$2")
    calls=$((calls + many))
    record "$1" "$(((more - less) / (many - few) / ${3:-1}))"
}

fresh_inbox seqinbox
fill seqinbox -v instances=10000 -v waiting=1 -f bench/sql/instances.sql \
    -f bench/sql/predecessors.sql -f bench/sql/waiting.sql
stop_server

numbers='FROM generate_series(:first, :last) n'
batch="SELECT count(b.outcome) $numbers CROSS JOIN LATERAL seqinbox_receive_batch(
    array_fill('Order0'::text, '{100}'),
    ARRAY(SELECT 'batch' || n || '-' || m FROM generate_series(1, 100) m),
    ARRAY(SELECT 'batch' || n || '-' || m / 10 FROM generate_series(1, 100) m),
    array_fill('v'::bytea, '{100}')) b"

# the bare INSERT, with PL/pgSQL's saved plan
insert="DO \$\$ BEGIN FOR n IN :first..:last LOOP
    INSERT INTO sequential_inbox_idempotence
        (message_type, idempotence_id, sequence_instance_id, created_at)
    VALUES ('Order0', 'insert' || n, 1000, now())
    ON CONFLICT (message_type, idempotence_id) DO NOTHING;
    END LOOP; END \$\$"

count bare_insert "$insert"
count claim "SELECT count(seqinbox_claim('Order0', 'claim' || n, 1000)) $numbers"
count claim_without_instance "SELECT count(seqinbox_claim('Order0', 'window' || n)) $numbers"
count claim_duplicate "SELECT count(seqinbox_claim('Order0', 'claim1', 1000)) $numbers"
count try_claim "SELECT count(seqinbox_try_claim('Order0', 'try' || n, 1000)) $numbers"
count try_claim_duplicate "SELECT count(seqinbox_try_claim('Order0', 'claim1', 1000)) $numbers"
received=$((calls + 1))
count receive "SELECT count((seqinbox_receive('Order0', 'receive' || n, 'c' || n / 10, 'v')).outcome) $numbers"
count receive_with_condition "SELECT count((seqinbox_receive('OrderDone', 'done' || n, n::text, 'v')).outcome) $numbers"
count receive_buffered "SELECT count((seqinbox_receive('OrderDone', 'early' || n, 'early' || n, 'v')).outcome) $numbers"
count receive_duplicate "SELECT count((seqinbox_receive('Order0', 'receive' || $received, 'c', 'v')).outcome) $numbers"
count receive_batch_per_message "$batch" 100
count next "SELECT count(m.id) $numbers CROSS JOIN LATERAL seqinbox_next(1000 + n) m"
count plpgsql_receive "SELECT count((plpgsql_receive('Order0', 'plpgsql' || n, 'p' || n / 10, 'v')).outcome) $numbers"
count plpgsql_receive_with_condition "SELECT count((plpgsql_receive('OrderDone', 'plpgsql' || n, n::text, 'v')).outcome) $numbers"

start_server
