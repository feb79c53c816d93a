# An inbox moves to another cluster by logical replication, in the steps of
# docs/operations.md: claims answer there, what waited is handed out in its order,
# and no ID is given twice.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxTest;

# its statements as they stand in the documentation, in their order
my $documentation = slurp_file("$FindBin::RealBin/../../docs/operations.md");
my ($section) = $documentation =~ /^(## Moving an inbox with logical replication\n.*?)(?:^## |\z)/ms
  or die 'the documentation has no such section';
my ($find_without_key, $publish, $subscribe, $not_copied, $complete, $unsubscribe, $set_sequences, @rest) =
  $section =~ /^```sql(?: notest)?\n(.*?)^```\n/msg;
die 'the documentation has other statements' if !$set_sequences || @rest;

my $old = new_node('old', init => [ allows_streaming => 'logical' ]);
my $new = new_node('new', init => [ allows_streaming => 'logical' ]);

sub in_inbox
{
    my ($node, $sql) = @_;

    return $node->safe_psql('postgres', "SET search_path = orders; $sql");
}

sub count_outcomes
{
    my ($node, $type, $ids, $contexts) = @_;

    return in_inbox($node, qq{
        SELECT r.outcome, count(*)
          FROM generate_series($ids) i
          CROSS JOIN LATERAL seqinbox_receive('$type', i::text, (i % $contexts)::text, 'value'::bytea || int4send(i),
                NULL, '{a,a}', ARRAY['x'::bytea, NULL]) r
         GROUP BY 1 ORDER BY 1});
}

$_->safe_psql('postgres', 'CREATE EXTENSION seqinbox') foreach $old, $new;
$old->safe_psql('postgres', q{SELECT seqinbox_create_inbox('orders')});
in_inbox($old, q{
    SELECT seqinbox_declare('{"sequences": [{"name": "Orders", "retentionPeriod": "7 days", "messages": [
        {"type": "Placed"},
        {"type": "Paid", "releaseCondition": {"predecessor": "Placed"}},
        {"type": "Shipped", "releaseCondition": {"and": [{"predecessor": "Placed"}, {"predecessor": "Paid"}]}}]}]}')});

# What was there before the subscription began, ...
is(count_outcomes($old, 'Shipped', '1, 20', 20), 'BUFFERED|20', 'messages wait');
is(count_outcomes($old, 'Placed', '1, 10', 20), 'PROCESS|10', 'others are processed');
in_inbox($old, q{SELECT seqinbox_claim('Hook', 'before')});

# A table that was adopted without its primary key, and one that an application
# has a trigger on
in_inbox($old, q{
    ALTER TABLE message_header DROP CONSTRAINT message_header_pkey;
    CREATE UNIQUE INDEX message_header_pkey ON message_header (id)});
is($old->safe_psql('postgres', $find_without_key), 'message_header', 'a table without a primary key is found');
in_inbox($old, q{
    ALTER TABLE message_header REPLICA IDENTITY USING INDEX message_header_pkey;
    CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''fired''; END'});

my $schema = $old->basedir . '/schema.sql';
$old->command_ok([ 'pg_dump', '--schema-only', '--schema=orders', '-f', $schema, '-d', $old->connstr('postgres') ],
    'dump of the tables');
$new->command_ok([ 'psql', '-q', '-X', '-v', 'ON_ERROR_STOP=1', '-f', $schema, '-d', $new->connstr('postgres') ],
    'restore of the tables');
in_inbox($new, q{
    CREATE TRIGGER fail BEFORE INSERT OR UPDATE OR DELETE ON sequenced_message
    FOR EACH ROW EXECUTE FUNCTION fail()});
$old->safe_psql('postgres', $publish);
my $connection = $old->connstr('postgres') =~ s/'/''/gr;
$subscribe =~ s/CONNECTION '.*?'/CONNECTION '$connection'/ or die 'the documentation names no connection';
$new->safe_psql('postgres', $subscribe);

# ... and what came later: inserts, updates and deletes in each table.
is(count_outcomes($old, 'Paid', '1, 20', 20), "BUFFERED|10\nPROCESS|10", 'messages while it runs');
is(in_inbox($old, q{
        SELECT count(*) FROM generate_series(1, 5) n CROSS JOIN LATERAL seqinbox_next((SELECT sequence_instance_id FROM sequenced_message WHERE id = n)) m}),
    5, 'a drain while it runs');
in_inbox($old, q{
    SELECT seqinbox_claim('Hook', 'during');
    SELECT seqinbox_record_failure('Placed', '11', '11', 'no stock', 'value');
    SELECT seqinbox_dead_letter((SELECT max(id) FROM sequenced_message WHERE state = 'WAITING'), 'given up')});

my @tables = qw(sequence_instance sequenced_message sequential_inbox_idempotence buffered_message
  message_header sequence_declaration message_type_declaration dead_letter);

sub all_rows
{
    my ($node) = @_;

    return join("\n", map { "$_:\n" . in_inbox($node, "SELECT t::text FROM $_ t ORDER BY 1") } @tables);
}

$new->poll_query_until('postgres', $not_copied, '0')
  or die 'the tables were not copied';
$old->poll_query_until('postgres', $complete)
  or die 'not all has arrived';
my $rows = all_rows($old);
is(all_rows($new), $rows, 'all rows have come');

# Switch over

my $used = in_inbox($old, join(' UNION ALL ', map { "SELECT coalesce(max(id), 0) FROM $_" }
          qw(sequence_instance sequenced_message buffered_message message_header dead_letter)));
$new->safe_psql('postgres', $unsubscribe);
$old->stop;
in_inbox($new, 'DROP TRIGGER fail ON sequenced_message');
like(in_inbox($new, $set_sequences), qr/^(\w+\|t\n){4}dead_letter\|t$/, 'the sequences are set');
my @next = split /\n/, in_inbox($new, join(' UNION ALL ', map { "SELECT nextval('${_}_sequence')" }
          qw(sequence_instance sequenced_message buffered_message message_header dead_letter)));
my @used = split /\n/, $used;
is(scalar(grep { $next[$_] <= $used[$_] } 0 .. $#used), 0, 'they are ahead of each ID')
  or diag("used: @used, next: @next");
$new->safe_psql('postgres', q{SELECT seqinbox_create_inbox('orders')});

# It goes on there

is(count_outcomes($new, 'Paid', '1, 20', 20), 'DUPLICATE|20', 'claims answer');
is(in_inbox($new, q{SELECT seqinbox_claim('Hook', 'before'), seqinbox_claim('Hook', 'during'), seqinbox_claim('Hook', 'after')}),
    'f|f|t', 'so do those without sequencing');
is(count_outcomes($new, 'Placed', '11, 20', 20), 'PROCESS|10', 'what others wait for arrives');
is(in_inbox($new, q{
        CREATE TEMPORARY TABLE handled (place int GENERATED ALWAYS AS IDENTITY, message_type text, context_id text, value bytea);
        DO $$
        BEGIN
            LOOP
                INSERT INTO handled (message_type, context_id, value)
                SELECT m.message_type, m.context_id, m.message_value FROM seqinbox_next() m;
                EXIT WHEN NOT FOUND;
            END LOOP;
        END $$;
        SELECT (SELECT count(*) FROM handled WHERE message_type = 'Paid'),
               (SELECT count(*) FROM handled WHERE message_type = 'Shipped'),
               (SELECT count(*) FROM handled p JOIN handled s USING (context_id)
                 WHERE p.message_type = 'Paid' AND s.message_type = 'Shipped' AND p.place > s.place),
               (SELECT count(*) FROM handled WHERE value IS NULL)}),
    '9|14|0|0', 'what waited is handed out in its order');
is(in_inbox($new, q{SELECT outcome FROM seqinbox_requeue((SELECT min(id) FROM dead_letter))}),
    'BUFFERED', 'a dead letter comes in again');
is(count_outcomes($new, 'Placed', '100, 110', 1000), 'PROCESS|11', 'new instances and messages');

done_testing();
