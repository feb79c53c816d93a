# A filled inbox survives pg_dump and a restore into a new cluster, plain and
# custom, and goes on working there.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use InboxStructure;
use SeqinboxTest;

my $source = new_node('source');
my $target = new_node('target');

my @tables = qw(sequence_instance sequenced_message buffered_message
  message_header sequential_inbox_idempotence sequence_declaration
  message_type_declaration dead_letter);

# Tables with their rows, the ids included, and where the sequences stand.
sub everything
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

$source->safe_psql('postgres', q{
    CREATE EXTENSION seqinbox;
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

my $before = everything($source, 'postgres');
foreach my $table (@tables)
{
    isnt($source->safe_psql('postgres', qq{SELECT count(*) FROM "Order inbox".$table}),
        '0', "the dumped inbox has rows in $table");
}

my $directory = PostgreSQL::Test::Utils::tempdir;
my %restores = (
    plain => [ 'plain', [ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f' ] ],
    custom => [ 'custom', [ 'pg_restore', '--exit-on-error' ] ],
    parallel => [ 'custom', [ 'pg_restore', '--exit-on-error', '-j4' ] ]);

foreach my $format (qw(plain custom))
{
    $source->command_ok(
        [ 'pg_dump', '-F', $format, '-f', "$directory/$format", $source->connstr('postgres') ],
        "pg_dump -F $format");
}

foreach my $name (sort keys %restores)
{
    my ($format, $command) = @{ $restores{$name} };
    my ($program, @arguments) = @$command;

    $target->safe_psql('postgres', "CREATE DATABASE $name");
    $target->command_ok(
        [ $program, '-d', $target->connstr($name), @arguments, "$directory/$format" ],
        "$name restore");
    is(everything($target, $name), $before, "$name: rows, ids and sequences are there");
    is( $target->safe_psql($name, q{
            SET search_path = "Order inbox";
            SELECT string_agg(header_name || '=' || coalesce(encode(header_value, 'hex'), 'NULL'), ' ' ORDER BY h.id)
              FROM message_header h
              JOIN buffered_message b ON b.id = h.buffered_message_id
              JOIN sequenced_message m ON m.id = b.sequenced_message_id
             WHERE m.idempotence_id = 'value'}),
        'b=02 a=01 b=NULL c=', "$name: headers are in order");
    is( $target->safe_psql($name, q{
            SET search_path = "Order inbox";
            SELECT count(*), bool_or(seqinbox_claim(message_type, idempotence_id, sequence_instance_id))
              FROM sequential_inbox_idempotence}),
        '104|f', "$name: all claims answer duplicate");
    is( $target->safe_psql($name, q{
            SET search_path = "Order inbox";
            SELECT seqinbox_claim('Webhook', '7'), seqinbox_claim('Webhook', '101'),
                   seqinbox_claim('OrderShipped', 'failed',
                       seqinbox_open_instance('OrderSequence', 'order-2'))}),
        'f|t|t', "$name: what was not claimed can be claimed");
    is( $target->safe_psql($name, q{
            SET search_path = "Order inbox";
            SELECT state, attempts FROM seqinbox_lookup('OrderShipped', 'failed')
            UNION ALL
            SELECT state, attempts FROM seqinbox_lookup('OrderShipped', 'tombstone')
            UNION ALL
            SELECT state, attempts FROM seqinbox_lookup('OrderCreated', 'processed')}),
        "FAILED|1\nWAITING|0\nPROCESSED|0", "$name: records are found");
    is( $target->safe_psql($name, q{
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

    my $structure = catalog_rows($target, '"Order inbox"', $name);
    $target->safe_psql($name, q{SELECT seqinbox_create_inbox('Order inbox')});
    is(catalog_rows($target, '"Order inbox"', $name),
        $structure, "$name: the restored inbox lacks nothing");
}

done_testing();
