# FilledInbox: an inbox with rows in each of its tables, and what has to be
# true of it wherever it was moved.

package FilledInbox;

use strict;
use warnings;

use Exporter 'import';
use Test::More;

use InboxStructure;

our @EXPORT = qw(fill_inbox inbox_content check_inbox);

my @tables = qw(sequence_instance sequenced_message buffered_message
  message_header sequential_inbox_idempotence sequence_declaration
  message_type_declaration dead_letter);

# Tables with their rows, the ids included, and where the sequences stand.
sub inbox_content
{
    my ($node, $database) = @_;
    my $lines = $node->safe_psql($database, q{
        SET search_path = "Order inbox";
        SELECT sequencename, last_value FROM pg_sequences
         WHERE schemaname = current_schema() ORDER BY 1});

    foreach my $table (@tables)
    {
        $lines .= "\n$table\n" . $node->safe_psql($database, qq{
            SET search_path = "Order inbox";
            SELECT * FROM $table ORDER BY $table.*::text});
    }
    return $lines;
}

# Makes the inbox in a database that has the extension, and returns its content.
sub fill_inbox
{
    my ($node, $database) = @_;

    $node->safe_psql($database, q{
    SELECT seqinbox_create_inbox('Order inbox');
    SET search_path = "Order inbox";
    INSERT INTO sequence_declaration (name, retention_period, sequencing_start_timestamp)
    VALUES ('OrderSequence', '24h', '2024-01-01 00:00Z');
    INSERT INTO message_type_declaration (message_type, sequence_name, release_condition)
    VALUES ('OrderCreated', 'OrderSequence', NULL),
           ('OrderShipped', 'OrderSequence', '{"predecessor": "OrderCreated"}');

    -- three waiting messages: a value, an empty one, a tombstone
    SELECT seqinbox_open_instance('OrderSequence', 'order-1') AS instance \gset
    BEGIN;
    SELECT seqinbox_claim('OrderShipped', 'value', :instance);
    SELECT seqinbox_store('OrderShipped', 'value', :instance, 'WAITING',
        message_value => decode(repeat('00ff5c27', 100000), 'hex'), message_key => '\x6b6579',
        header_names => ARRAY['b', 'a', 'b', 'c'],
        header_values => ARRAY['\x02', '\x01', NULL, '']::bytea[],
        topic => 'orders', cluster_name => 'main',
        message_uuid => '12345678-1234-1234-1234-123456789abc',
        traceparent => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01');
    SELECT seqinbox_claim('OrderShipped', 'empty', :instance);
    SELECT seqinbox_store('OrderShipped', 'empty', :instance, 'WAITING', message_value => '');
    SELECT seqinbox_claim('OrderShipped', 'tombstone', :instance);
    SELECT seqinbox_store('OrderShipped', 'tombstone', :instance, 'WAITING', message_key => '\x6b');
    COMMIT;

    -- one that failed at first, with its payload, and one that was processed
    SELECT seqinbox_record_failure('OrderShipped', 'failed', 'order-2', E'out of stock\n\ttwice',
        message_value => 'failed value', header_names => ARRAY['z', 'y'],
        header_values => ARRAY['last', 'first']::bytea[]);
    BEGIN;
    SELECT seqinbox_claim('OrderCreated', 'processed',
        seqinbox_open_instance('OrderSequence', 'order-3'));
    SELECT seqinbox_store('OrderCreated', 'processed',
        seqinbox_open_instance('OrderSequence', 'order-3'), 'PROCESSED');
    COMMIT;

    -- idempotence only, and a dead letter
    SELECT seqinbox_claim('Webhook', id::text) FROM generate_series(1, 100) AS id;
    INSERT INTO dead_letter (sequence_name, context_id, message_type, cluster_name, topic,
        sequenced_message_id, idempotence_id, state, created_at, attempts, reason, removed_at,
        payload_buffered, message_value, header_names, header_values)
    VALUES ('OrderSequence', 'order-0', 'OrderShipped', '', '', gen_random_uuid(), 'dead',
        'WAITING', now(), 1, 'expired', now(), true, 'value', ARRAY['h'], ARRAY[NULL]::bytea[]);
    });
    foreach my $table (@tables)
    {
        isnt($node->safe_psql($database, qq{SELECT count(*) FROM "Order inbox".$table}),
            '0', "the filled inbox has rows in $table");
    }
    return inbox_content($node, $database);
}

# The inbox has the content that fill_inbox returned, and goes on from there.
sub check_inbox
{
    my ($node, $database, $content, $name) = @_;

    is(inbox_content($node, $database), $content, "$name: rows, ids and sequences are there");
    is( $node->safe_psql($database, q{
            SET search_path = "Order inbox";
            SELECT string_agg(header_name || '=' || coalesce(encode(header_value, 'hex'), 'NULL'), ' ' ORDER BY h.id)
              FROM message_header h
              JOIN buffered_message b ON b.id = h.buffered_message_id
              JOIN sequenced_message m ON m.id = b.sequenced_message_id
             WHERE m.idempotence_id = 'value'}),
        'b=02 a=01 b=NULL c=', "$name: headers are in order");
    is( $node->safe_psql($database, q{
            SET search_path = "Order inbox";
            SELECT count(*), bool_or(seqinbox_claim(message_type, idempotence_id, sequence_instance_id))
              FROM sequential_inbox_idempotence}),
        '104|f', "$name: all claims answer duplicate");
    is( $node->safe_psql($database, q{
            SET search_path = "Order inbox";
            SELECT seqinbox_claim('Webhook', '7'), seqinbox_claim('Webhook', '101'),
                   seqinbox_claim('OrderShipped', 'failed',
                       seqinbox_open_instance('OrderSequence', 'order-2'))}),
        'f|t|t', "$name: what was not claimed can be claimed");
    is( $node->safe_psql($database, q{
            SET search_path = "Order inbox";
            SELECT state, attempts FROM seqinbox_lookup('OrderShipped', 'failed')
            UNION ALL
            SELECT state, attempts FROM seqinbox_lookup('OrderShipped', 'tombstone')
            UNION ALL
            SELECT state, attempts FROM seqinbox_lookup('OrderCreated', 'processed')}),
        "FAILED|1\nWAITING|0\nPROCESSED|0", "$name: records are found");
    is( $node->safe_psql($database, q{
            SET search_path = "Order inbox";
            SELECT max(id) AS instance FROM sequence_instance \gset
            SELECT max(id) AS message FROM sequenced_message \gset
            SELECT max(id) AS buffered FROM buffered_message \gset
            SELECT max(id) AS header FROM message_header \gset
            SELECT seqinbox_open_instance('OrderSequence', 'order-4') > :instance;
            SELECT seqinbox_store('OrderShipped', 'new', id, 'WAITING', message_value => 'v',
                       header_names => ARRAY['h'], header_values => ARRAY['v']::bytea[]) > :message
              FROM sequence_instance WHERE context_id = 'order-4';
            SELECT max(id) > :buffered FROM buffered_message;
            SELECT max(id) > :header FROM message_header}),
        "t\nt\nt\nt", "$name: new rows get new ids");

    is( $node->safe_psql($database, q{
            SET search_path = "Order inbox";
            SELECT outcome, sequence_instance_id AS instance, release_due
              FROM seqinbox_receive('OrderCreated', 'created', 'order-1', '\x00') \gset
            \echo :outcome :release_due
            SELECT idempotence_id, length(message_value), message_key, header_names FROM seqinbox_next(:instance);
            SELECT idempotence_id, length(message_value), message_key, header_names FROM seqinbox_next(:instance);
            SELECT idempotence_id, length(message_value), message_key, header_names FROM seqinbox_next(:instance);
            SELECT count(*) FROM seqinbox_next(:instance)}),
        "PROCESS t\nvalue|400000|\\x6b6579|{b,a,b,c}\nempty|0||\ntombstone||\\x6b|\n0",
        "$name: waiting messages are handed out in order");

    my $structure = catalog_rows($node, '"Order inbox"', $database);
    $node->safe_psql($database, q{SELECT seqinbox_create_inbox('Order inbox')});
    is(catalog_rows($node, '"Order inbox"', $database),
        $structure, "$name: the inbox lacks nothing");
    return;
}

1;
