# HistoricalInbox: inboxes as other programs made them before this extension
# existed, in each step of their history, and those programs' INSERTs.

package HistoricalInbox;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(@steps create_historical_inbox insert_as_old_program
  fill_historical_inbox old_tables old_columns);

# The columns of the steps V7 and V8 are those of V6.
our @steps = qw(V1 V2 V3 V4 V5 V6 V9);

# Per table: column, type, the old programs' value for row number n, and the
# step that added the column where that isn't the first.
my @tables = (
    sequence_instance => [
        [ id => 'bigint PRIMARY KEY', 'n' ],
        [ name => 'text NOT NULL', q{'OrderSequence'} ],
        [ context_id => 'text NOT NULL', q{'order-' || n} ],
        [ state => 'text NOT NULL', q{CASE WHEN n % 3 = 0 THEN 'CLOSED' ELSE 'OPEN' END} ],
        [ created_at => 'timestamptz NOT NULL', q{timestamptz '2024-01-01 00:00Z' + n * interval '1 minute'} ],
        [ closed_at => 'timestamptz', q{CASE WHEN n % 3 = 0 THEN timestamptz '2024-02-01 00:00Z' END} ],
        [ retain_until => 'timestamptz NOT NULL', q{timestamptz '2099-01-01 00:00Z'} ],
        [ remove_after => 'timestamptz', q{CASE WHEN n % 5 = 0 THEN timestamptz '2099-02-01 00:00Z' END}, 'V2' ],
        [ pending_action => 'text', 'NULL::text', 'V3' ],
        [ created_in_recording_mode => 'boolean NOT NULL DEFAULT false', 'n % 7 = 0', 'V9' ],
    ],
    sequenced_message => [
        [ id => 'bigint PRIMARY KEY', 'n' ],
        [ message_type => 'text NOT NULL', q{CASE WHEN n % 2 = 0 THEN 'OrderCreated' ELSE 'OrderShipped.EXPRESS' END} ],
        [ cluster_name => 'text NOT NULL', q{'main'} ],
        [ topic => 'text NOT NULL', q{'orders'} ],
        [ sequenced_message_id => 'uuid NOT NULL', q{md5(n::text)::uuid} ],
        [ idempotence_id => 'text NOT NULL', q{'message-' || n} ],
        [ state => 'text NOT NULL', q{CASE n % 10 WHEN 3 THEN 'WAITING' WHEN 4 THEN 'FAILED' ELSE 'PROCESSED' END} ],
        [ trace_id_high => 'bigint', 'n' ],
        [ trace_id => 'bigint', '-n' ],
        [ span_id => 'bigint', 'n' ],
        [ parent_span_id => 'bigint', 'NULL::bigint' ],
        [ trace_id_string => 'text', q{md5(n::text)} ],
        [ sampled => 'boolean', 'n % 2 = 0', 'V5' ],
        [ created_at => 'timestamptz NOT NULL', q{timestamptz '2024-01-02 00:00Z' + n * interval '1 second'} ],
        [ state_changed_at => 'timestamptz', 'NULL::timestamptz' ],
        [ sequence_instance_id => 'bigint NOT NULL REFERENCES sequence_instance', '1 + n % 30' ],
        [ pending_action => 'text', 'NULL::text', 'V3' ],
    ],
    buffered_message => [
        [ id => 'bigint PRIMARY KEY', 'n' ],
        [ sequence_instance_id => 'bigint NOT NULL REFERENCES sequence_instance', '1 + n % 30' ],
        [ sequenced_message_id => 'bigint NOT NULL REFERENCES sequenced_message', 'n' ],
        [ message_key => 'bytea', q{convert_to('key ' || n, 'UTF8')} ],
        [ message_value => 'bytea', q{CASE WHEN n % 20 = 3 THEN NULL ELSE convert_to('value ' || n, 'UTF8') END} ],
    ],
    message_header => [
        [ id => 'bigint PRIMARY KEY', 'n' ],
        [ buffered_message_id => 'bigint NOT NULL REFERENCES buffered_message', 'n / 10 * 10 + 3' ],
        [ header_name => 'text NOT NULL', q{'header-' || n % 2} ],
        [ header_value => 'bytea', q{convert_to(n::text, 'UTF8')} ],
    ],
    sequential_inbox_idempotence => [
        [ message_type => 'text NOT NULL', q{'OrderCreated'}, 'V6' ],
        [ idempotence_id => 'text NOT NULL', q{'message-' || n}, 'V6' ],
        [ sequence_instance_id => 'bigint NOT NULL REFERENCES sequence_instance ON DELETE CASCADE', '1 + n % 30', 'V6' ],
        [ created_at => 'timestamptz NOT NULL', q{timestamptz '2024-01-02 00:00Z'}, 'V6' ],
    ],
);

my %columns = @tables;

# What the steps have besides columns, in the order of its creation.
my @indexes = (
    [ 'ALTER TABLE sequence_instance ADD UNIQUE (name, context_id)', 'V1' ],
    [ 'CREATE INDEX ON sequenced_message (sequence_instance_id)', 'V1' ],
    [ 'CREATE INDEX ON sequenced_message (idempotence_id)', 'V1' ],
    [ 'CREATE INDEX ON sequence_instance (retain_until)', 'V4' ],
    [ 'ALTER TABLE sequential_inbox_idempotence'
          . ' ADD CONSTRAINT sequential_inbox_idempotence_pkey'
          . ' PRIMARY KEY (message_type, idempotence_id)', 'V6' ],
    [ 'CREATE INDEX sequential_inbox_idempotence_sequence_instance_id'
          . ' ON sequential_inbox_idempotence (sequence_instance_id)', 'V6' ],
);

sub step_number
{
    my ($step) = @_;

    return substr($step // 'V1', 1);
}

# The columns that a table has in a step; none: the table isn't there yet.
sub columns_of
{
    my ($step, $table) = @_;

    return grep { step_number($_->[3]) <= step_number($step) }
      @{ $columns{$table} };
}

# The tables that a step has, referenced ones first.
sub old_tables
{
    my ($step) = @_;
    my @names = @tables[ grep { $_ % 2 == 0 } 0 .. $#tables ];

    return grep { columns_of($step, $_) } @names;
}

sub old_columns
{
    my ($step, $table) = @_;

    return map { $_->[0] } columns_of($step, $table);
}

# An empty inbox of the given step. With defaults => 1 the ids have their
# sequence as a default; otherwise the programs bring the ids themselves.
# With indexes => 0 there are only the primary keys.
sub create_historical_inbox
{
    my ($node, $schema, $step, %params) = @_;
    my $sql = "CREATE SCHEMA $schema; SET search_path = $schema;\n";

    foreach my $table (old_tables($step))
    {
        my @definitions = map { "$_->[0] $_->[1]" } columns_of($step, $table);

        if ($definitions[0] =~ /^id /)
        {
            # Hibernate's pooled optimizer takes ids in blocks of 50
            $sql .= "CREATE SEQUENCE ${table}_sequence INCREMENT 50;\n";
            $definitions[0] .= " DEFAULT nextval('${table}_sequence')"
              if $params{defaults};
        }
        $sql .= "CREATE TABLE $table (" . join(', ', @definitions) . ");\n";
    }
    if ($params{indexes} // 1)
    {
        foreach my $index (@indexes)
        {
            $sql .= "$index->[0];\n"
              if step_number($index->[1]) <= step_number($step);
        }
    }
    $node->safe_psql('postgres', $sql);
    return;
}

# The INSERT of a program of that step, which knows the columns of its step
# only. Rows are "from .. to" or any other query of numbers; the values of
# single columns can be given as SQL expressions over n.
sub insert_as_old_program
{
    my ($schema, $step, $table, $rows, %values) = @_;
    my @columns = columns_of($step, $table);

    $rows = "SELECT generate_series($1, $2)" if $rows =~ /^(\d+) \.\. (\d+)$/;
    return "INSERT INTO $schema.$table ("
      . join(', ', map { $_->[0] } @columns)
      . ') SELECT '
      . join(', ', map { $values{ $_->[0] } // $_->[2] } @columns)
      . " FROM ($rows) AS rows (n)";
}

# Thirty instances, 400 messages, the payloads of those that wait, and the
# duplicates that history left. The sequences stand where the old programs'
# blocks of ids end.
sub fill_historical_inbox
{
    my ($node, $schema, $step) = @_;
    my $waiting = 'SELECT n FROM generate_series(1, 300) AS n WHERE n % 10 = 3';
    my $headers = 'SELECT n FROM generate_series(1, 300) AS n WHERE n % 10 IN (4, 5, 6)';
    my @sql = (
        insert_as_old_program($schema, $step, 'sequence_instance', '1 .. 30'),
        insert_as_old_program($schema, $step, 'sequenced_message', '1 .. 300'),
        insert_as_old_program($schema, $step, 'buffered_message', $waiting),
        insert_as_old_program($schema, $step, 'message_header', $headers));

    push @sql, insert_as_old_program($schema, $step,
        'sequential_inbox_idempotence', '201 .. 300')
      if grep { $_ eq 'sequential_inbox_idempotence' } old_tables($step);

    my $id = 301;
    foreach my $duplicate (
        [ 'processed twice', 'PROCESSED', 'PROCESSED' ],
        [ 'processed, then failed', 'PROCESSED', 'FAILED' ],
        [ 'failed, then waiting', 'FAILED', 'WAITING' ],
        [ 'waiting, then failed', 'WAITING', 'FAILED' ],
        [ 'processed, then waiting', 'PROCESSED', 'WAITING' ],
        [ 'failed twice', 'FAILED', 'FAILED' ])
    {
        my ($idempotence_id, @states) = @$duplicate;

        foreach my $state (@states)
        {
            push @sql, insert_as_old_program($schema, $step,
                'sequenced_message', "$id .. $id",
                message_type => "'OrderCreated'",
                idempotence_id => "'$idempotence_id'",
                state => "'$state'");
            $id++;
        }
    }
    foreach my $table (grep { $_ ne 'sequential_inbox_idempotence' } old_tables($step))
    {
        push @sql, "SELECT setval('$schema.${table}_sequence', 351)";
    }
    $node->safe_psql('postgres', join(";\n", @sql));
    return;
}

1;
