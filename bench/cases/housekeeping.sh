# How fast housekeeping removes instances, against hand-written DELETEs of the
# same rows; and how long deliveries take meanwhile.

instances=20000
[ -z "$quick" ] || instances=2000
expired="SELECT count(*) FROM seqinbox.sequence_instance WHERE context_id LIKE 'expired%'"

fill_expired()
{
    fresh_inbox seqinbox
    fill seqinbox -v instances="$instances" -f bench/sql/expired.sql
}

# remove_with SCRIPT: rows per second
remove_with()
{
    fill_expired
    quietly fill_log "$1"
    expect 0 "$expired"
    expect 0 'SELECT count(*) FROM seqinbox.sequenced_message'
    awk -v rows="$((instances * 21))" '/^Time: / { ms += $2 } END { print rows / ms * 1000 }' "$log"
}

fill_log()
{
    sql -c 'SET search_path = seqinbox, public' -c '\timing on' -f "bench/sql/$1.sql"
}

hand_written()
{
    remove_with delete
}

housekeeping()
{
    remove_with housekeeping
}

compare removal rows/s hand_written housekeeping
goal removal housekeeping '>=' 0.7 hand_written

# of the latencies in pgbench's logs, without the first of each connection
p99()
{
    cat "$WORK"/latencies.* | awk '$2 > 100 { print $3 }' | sort -n |
        awk '{ latency[NR] = $1 } END { print latency[int(NR * 0.99 + 0.5)] }'
    rm "$WORK"/latencies.*
}

# receive_with [SCRIPT]: while that removes, to the end of the turn
receive_with()
{
    rm -f "$WORK"/latencies.*
    fill_expired
    if [ $# -gt 0 ]
    then
        PGAPPNAME=removal fill_log "$1" >"$log.removal" 2>&1 &
    fi
    pgbench_in seqinbox receive -R 1000 -l --log-prefix="$WORK/latencies"
    expect t "SELECT ($expired) > 0"
    sql -c "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
        WHERE application_name = 'removal'" >"$log"
    p99
}

receive_alone()
{
    receive_with
}

receive_during_housekeeping()
{
    receive_with housekeeping
}

receive_during_delete()
{
    receive_with delete
}

instances=$((seconds * 12000))
connections=4
variant='p99 of seqinbox_receive, 1000 deliveries per second'
compare "$variant" us receive_alone receive_during_housekeeping receive_during_delete
goal "$variant" receive_during_housekeeping '<=' 1.5 receive_alone
