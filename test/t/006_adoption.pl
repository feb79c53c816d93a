# An existing database of each step becomes an inbox as it is: it gets what a
# fresh inbox has, keeps its data and its files, and its old programs go on.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use HistoricalInbox;
use InboxStructure;
use SeqinboxSql;
use SeqinboxTest;

my $node = new_node('main', conf => "autovacuum = off\n");
$node->safe_psql('postgres', q{
    CREATE EXTENSION seqinbox;
    SELECT seqinbox_create_inbox('fresh')});

# What the steps have serves in place of what a fresh inbox has.
my %serves_as = (
    'sequenced_message (sequence_instance_id, message_type)' =>
      'sequenced_message (sequence_instance_id)');

# Those of the first list that the second one lacks.
sub lacking
{
    my ($wanted, $there) = @_;
    my %there = map { $_ => 1 } @$there;

    return join("\n", grep { !$there{$_} } @$wanted);
}

# The historical rows, in the columns that their step had.
sub history
{
    my ($schema, $step) = @_;

    return join("\n", map {
        content($node, $schema, $_, join(', ', old_columns($step, $_)),
            $_ eq 'sequential_inbox_idempotence' ? "idempotence_id LIKE 'message-%'" : 'id <= 351')
    } old_tables($step));
}

# Functions and old programs side by side, on ids that neither has used.
sub goes_on
{
    my ($schema, $step, $name) = @_;
    my $block = $node->safe_psql('postgres',
        "SELECT nextval('$schema.sequenced_message_sequence')");

    # the old program owns 50 ids, the last of which it was given
    $node->safe_psql('postgres', insert_as_old_program($schema, $step,
        'sequenced_message', ($block - 49) . " .. $block"));
    is( $node->safe_psql('postgres', qq{
            SET search_path = $schema;
            INSERT INTO sequence_declaration (name, retention_period) VALUES ('OrderSequence', '1 day');
            INSERT INTO message_type_declaration (message_type, sequence_name)
            VALUES ('OrderCreated', 'OrderSequence');
            SELECT seqinbox_open_instance('OrderSequence', 'order-1');
            SELECT seqinbox_open_instance('OrderSequence', 'order-new') AS instance \\gset
            SELECT :instance > 351;
            SELECT seqinbox_claim('OrderCreated', 'new', :instance),
                   seqinbox_claim('OrderCreated', 'new', :instance),
                   seqinbox_try_claim('OrderCreated', 'new', :instance),
                   seqinbox_claim('Webhook', 'new');
            SELECT seqinbox_store('OrderCreated', 'new', :instance, 'WAITING', message_value => 'v',
                       header_names => ARRAY['h'], header_values => ARRAY['v']::bytea[]) AS message \\gset
            SELECT :message > $block;
            SELECT seqinbox_fail_and_release(:message, 'error', '1 minute');
            SELECT seqinbox_record_failure('OrderCreated', 'failed', 'order-2', 'error',
                       message_value => 'v') > $block;
            SELECT m.state, m.attempts, last_error, retry_at > now(), message_value, header_name
              FROM sequenced_message m
              JOIN buffered_message b ON b.sequenced_message_id = m.id
              JOIN message_header h ON h.buffered_message_id = b.id
             WHERE m.id = :message}),
        "1\nt\nt|f|DUPLICATE|t\nt\nt\nt\nFAILED|1|error|t|\\x76|h",
        "$name: the functions work");
    my $next_block = $node->safe_psql('postgres',
        "SELECT nextval('$schema.sequenced_message_sequence')");
    $node->safe_psql('postgres', insert_as_old_program($schema, $step,
        'sequenced_message', ($next_block - 49) . " .. $next_block"));
    is( $node->safe_psql('postgres', qq{
            SELECT count(*), bool_and(attempts = 0 AND last_error IS NULL AND retry_at IS NULL)
              FROM $schema.sequenced_message WHERE id BETWEEN $block - 49 AND $block
                OR id BETWEEN $next_block - 49 AND $next_block}),
        '100|t', "$name: old programs' rows get the defaults");
    return;
}

my %what_counts = (
    'processed twice' => '302|PROCESSED',
    'processed, then failed' => '303|PROCESSED',
    'failed, then waiting' => '306|WAITING',
    'waiting, then failed' => '307|WAITING',
    'processed, then waiting' => '309|PROCESSED',
    'failed twice' => '312|FAILED',
    'message-6' => '6|PROCESSED');

foreach my $step (@steps)
{
    foreach my $defaults (0, 1)
    {
        my $schema = lc($step) . ($defaults ? '_with_defaults' : '');

        create_historical_inbox($node, $schema, $step, defaults => $defaults);
        fill_historical_inbox($node, $schema, $step);
        $node->safe_psql('postgres',
            "ALTER TABLE $schema.sequence_instance ADD note text DEFAULT 'ours'");
        my $history = history($schema, $step);
        my @storage = storage($node, $schema);

        my $messages = sql_messages($node, "SELECT seqinbox_create_inbox('$schema')");
        like($messages, qr/^psql:\S+ NOTICE: .*"attempts".*"$schema\.sequenced_message"$/m,
            "$schema: a notice names what was added");
        unlike($messages, qr/"note"|created table "\S+\.sequence_instance"/,
            "$schema: and only that");

        is(lacking([ inbox_columns($node, 'fresh') ], [ inbox_columns($node, $schema) ]),
            '', "$schema: columns are those of a fresh inbox");
        is(lacking([ inbox_columns($node, $schema) ], [ inbox_columns($node, 'fresh') ]),
            q{sequence_instance.note text DEFAULT 'ours'::text},
            "$schema: and the one that was its own");
        my @wanted_indexes = map { $serves_as{$_} // $_ } inbox_indexes($node, 'fresh');
        is(lacking(\@wanted_indexes, [ inbox_indexes($node, $schema) ]), '', "$schema: indexes are those of a fresh inbox");
        is(lacking([ inbox_constraints($node, 'fresh') ], [ inbox_constraints($node, $schema) ]),
            '', "$schema: keys are those of a fresh inbox");
        is(lacking(\@storage, [ storage($node, $schema) ]),
            '', "$schema: nothing was rewritten");
        is(history($schema, $step), $history, "$schema: data are unchanged");

        my $catalog_rows = catalog_rows($node, $schema);
        $node->safe_psql('postgres', "SELECT seqinbox_create_inbox('$schema')");
        is(catalog_rows($node, $schema), $catalog_rows, "$schema: a second call changes nothing");

        is( $node->safe_psql('postgres', qq{
                SET search_path = $schema;
                SELECT key, id, state
                  FROM unnest(ARRAY['@{[ join("','", sort keys %what_counts) ]}']) AS key,
                       seqinbox_lookup('OrderCreated', key)
                 ORDER BY key COLLATE "C"}),
            join("\n", map { "$_|$what_counts{$_}" } sort keys %what_counts),
            "$schema: look-ups tolerate the duplicates");
        is( $node->safe_psql('postgres', qq{
                SET search_path = $schema;
                SELECT seqinbox_claim('OrderCreated', 'message-298', 1)}),
            $step =~ /^V[69]$/ ? 'f' : 't', "$schema: claims that were there answer");
        goes_on($schema, $step, $schema);
        is(history($schema, $step), $history, "$schema: data are unchanged after that");
    }
}

# ids that no sequence gave
create_historical_inbox($node, 'no_sequences', 'V9');
fill_historical_inbox($node, 'no_sequences', 'V9');
$node->safe_psql('postgres', qq{
    DROP SEQUENCE @{[ join(', ', map { "no_sequences.${_}_sequence" }
        qw(sequence_instance sequenced_message buffered_message message_header)) ]}});
$node->safe_psql('postgres', q{SELECT seqinbox_create_inbox('no_sequences')});
is( $node->safe_psql('postgres', q{
        SET search_path = no_sequences;
        SELECT seqinbox_open_instance('OrderSequence', 'new', '1 day') AS instance \gset
        SELECT :instance > 30;
        SELECT seqinbox_store('OrderCreated', 'new', :instance, 'WAITING', message_value => 'v',
                   header_names => ARRAY['h'], header_values => ARRAY['v']::bytea[]) > 312}),
    "t\nt", 'sequences that were missing continue after the ids that are there');

# text columns under another collation, and text of another name
create_historical_inbox($node, 'varchars', 'V9');
$node->safe_psql('postgres', q{
    SET search_path = varchars;
    ALTER TABLE sequenced_message
        ALTER idempotence_id TYPE varchar(255) COLLATE "POSIX", ALTER state TYPE varchar(20)});
fill_historical_inbox($node, 'varchars', 'V9');
my @varchars = grep { /varying/ } inbox_columns($node, 'varchars');
$node->safe_psql('postgres', q{SELECT seqinbox_create_inbox('varchars')});
is(join("\n", grep { /varying/ } inbox_columns($node, 'varchars')),
    join("\n", @varchars), 'varchar columns stay');
is( $node->safe_psql('postgres', q{
        SELECT collname FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation
         WHERE attrelid = 'varchars.sequenced_message'::regclass AND attname = 'idempotence_id'}),
    'POSIX', 'and so do their collations');
goes_on('varchars', 'V9', 'varchars');

# columns that cannot be used
my %incompatible = (
    'sequenced_message.idempotence_id' => 'ALTER idempotence_id TYPE integer USING 1',
    'sequenced_message.sequenced_message_id' => 'ALTER sequenced_message_id TYPE text',
    'sequenced_message.attempts' => 'ADD attempts text',
    'sequence_instance.created_at' => 'ALTER created_at TYPE timestamp',
    'sequence_instance.pending_action' => 'ALTER pending_action TYPE integer USING 1',
    'buffered_message.message_value' => 'ALTER message_value TYPE text',
    'message_header.id' => 'ALTER id TYPE integer',
    'sequential_inbox_idempotence.message_type' => 'ALTER message_type TYPE bytea USING NULL',
    'dead_letter.reason' => 'ALTER reason TYPE jsonb USING NULL');

foreach my $name (sort keys %incompatible)
{
    my ($table, $column) = split /\./, $name;
    my $schema = "incompatible_${table}_$column";

    create_historical_inbox($node, $schema, 'V6');
    $node->safe_psql('postgres', "CREATE TABLE $schema.dead_letter (id bigint PRIMARY KEY, reason text)")
      if $table eq 'dead_letter';
    $node->safe_psql('postgres', "ALTER TABLE $schema.$table $incompatible{$name}");

    my $catalog_rows = catalog_rows($node, $schema);

    like(sql_error($node, "SELECT seqinbox_create_inbox('$schema')"),
        qr/ERROR:  42804: .*"$column".*"$schema\.$table"/, "$name is of an incompatible type");
    is(catalog_rows($node, $schema), $catalog_rows, "$name: nothing was changed");
}

# indexes that are there, in place of the one on remove_after or, if so named,
# of another
my $remove_after = 'sequence_instance (remove_after)';
my %indexes = (
    'a full index on (state, message_type)' => [
        'CREATE INDEX ours ON sequenced_message (state, message_type)', 'counts',
        q{sequenced_message (message_type) WHERE ((state = 'WAITING'::text) OR (state = 'FAILED'::text))} ],
    'an index of the instance' => [
        'SELECT 1', 'does not count',
        'sequenced_message (sequence_instance_id) WHERE (pending_action IS NOT NULL)' ],
    'an index with more columns behind' =>
      [ 'CREATE INDEX ours ON sequence_instance (remove_after, name)', 'counts' ],
    'an index with the column behind another' =>
      [ 'CREATE INDEX ours ON sequence_instance (name, remove_after)', 'does not count' ],
    'a partial index in place of a full one' =>
      [ q{CREATE INDEX ours ON sequence_instance (remove_after) WHERE state = 'OPEN'}, 'does not count' ],
    'an index on an expression' =>
      [ 'CREATE INDEX ours ON sequence_instance ((remove_after > retain_until))', 'does not count' ],
    'an index of another kind' =>
      [ 'CREATE INDEX ours ON sequence_instance USING brin (remove_after)', 'does not count' ],
    'an invalid index' => [ q{
        CREATE INDEX ours ON sequence_instance (remove_after);
        UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'ours'::regclass}, 'does not count' ]);
my $number = 0;

foreach my $name (sort keys %indexes)
{
    my ($sql, $verdict, $index) = @{ $indexes{$name} };
    my $schema = 'indexes_' . ++$number;

    create_historical_inbox($node, $schema, 'V9');
    $node->safe_psql('postgres', "SET search_path = $schema; $sql");
    $node->safe_psql('postgres', "SELECT seqinbox_create_inbox('$schema')");
    my @built = grep { $_ eq ($index // $remove_after) } inbox_indexes($node, $schema);
    is(scalar @built, $verdict eq 'counts' ? 0 : 1, "$name $verdict");
}

# the name of a missing index is taken by one that does not count
create_historical_inbox($node, 'taken_name', 'V9');
$node->safe_psql('postgres', q{
    CREATE INDEX sequence_instance_remove_after ON taken_name.sequence_instance (name)});
like(sql_messages($node, q{SELECT seqinbox_create_inbox('taken_name')}),
    qr/"sequence_instance_remove_after"/, 'a name that is taken is told, not an error');

done_testing();
