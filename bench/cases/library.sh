# seqinbox_receive against the npm library pg-transactional-outbox, its inbox
# with the polling listener. Both are called by node-postgres.

quietly env npm_config_cache="$WORK/npm-cache" npm ci --prefix bench/library \
    --ignore-scripts --no-audit --no-fund --no-update-notifier

# run_node CONTENDER
run_node()
{
    fresh_inbox seqinbox
    sql -c CHECKPOINT
    quietly in_inbox seqinbox node bench/library/library.js "$1" "$connections" "$seconds"
    read -r messages per_second <"$log"
}

library()
{
    run_node library
    expect t "SELECT count(processed_at) >= $messages FROM inbox"
    echo "$per_second"
}

seqinbox_receive()
{
    run_node seqinbox
    expect "$messages" "SELECT count(*) FROM seqinbox.sequenced_message WHERE state = 'PROCESSED'"
    echo "$per_second"
}

for connections in 1 4 16
do
    variant="connections: $connections"
    compare "$variant" messages/s library seqinbox_receive
    goal "$variant" seqinbox_receive '>=' 5 library
done
