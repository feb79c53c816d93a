# The memory of a session after ten thousand and after a million deliveries. Some
# pages come with the plans that are made again when autovacuum has analysed the
# tables.

deliveries=1000000
[ -z "$quick" ] || deliveries=10000

# one session for both contenders
fill_memory()
{
    fresh_inbox seqinbox
    sql -v deliveries="$deliveries" -f bench/sql/memory.sql >"$WORK/memory"
    expect "$deliveries" 'SELECT count(*) FROM seqinbox.sequenced_message'
}

after_ten_thousand()
{
    settings='-c synchronous_commit=off'
    in_inbox seqinbox fill_memory
    head -n 1 "$WORK/memory"
}

after_a_million()
{
    tail -n 1 "$WORK/memory"
}

rounds=1
compare 'one session' kB after_ten_thousand after_a_million
goal 'one session' after_a_million '<=' 1.1 after_ten_thousand
