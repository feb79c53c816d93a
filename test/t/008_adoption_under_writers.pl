# A million historical messages, a thousand of which have an idempotence ID
# twice, become an inbox while another program goes on inserting.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

use HistoricalInbox;
use InboxStructure;
use SeqinboxSql;
use SeqinboxTest;

my $history = 1_000_000;
my $duplicates = 1_000;

my $node = new_node('main', conf => "autovacuum = off\nlog_statement = none\nmax_wal_size = 4GB\n");
$node->safe_psql('postgres', 'CREATE EXTENSION seqinbox; CREATE TABLE stop ()');

create_historical_inbox($node, 'inbox', 'V5', indexes => 0);
$node->safe_psql('postgres', join(";\n",
    insert_as_old_program('inbox', 'V5', 'sequence_instance', '1 .. 30'),
    'ALTER TABLE inbox.sequenced_message DROP CONSTRAINT sequenced_message_sequence_instance_id_fkey',
    insert_as_old_program('inbox', 'V5', 'sequenced_message', "1 .. $history",
        message_type => q{'OrderCreated'},
        idempotence_id => "'message-' || CASE WHEN n <= $duplicates THEN n + $duplicates ELSE n END"),
    'ALTER TABLE inbox.sequenced_message ADD FOREIGN KEY (sequence_instance_id) REFERENCES inbox.sequence_instance',
    'ALTER TABLE inbox.sequence_instance ADD UNIQUE (name, context_id)',
    'CREATE INDEX ON inbox.sequenced_message (sequence_instance_id)',
    'CREATE INDEX ON inbox.sequenced_message (idempotence_id)',
    "SELECT setval('inbox.sequence_instance_sequence', 31)",
    "SELECT setval('inbox.sequenced_message_sequence', $history + 1)",
    'ANALYZE inbox.sequenced_message'));

# The other program inserts one message per transaction until it is told to
# stop, and ends with an error when one of them fails.
my $directory = PostgreSQL::Test::Utils::tempdir;
my $insert = insert_as_old_program('inbox', 'V5', 'sequenced_message',
    q{SELECT nextval('inbox.sequenced_message_sequence')},
    idempotence_id => q{'written-' || n}, created_at => 'clock_timestamp()');
append_to_file("$directory/script", join("\n",
    $insert . ';',
    'SELECT EXISTS (SELECT FROM stop) AS stop, pg_sleep(0.002) \gset',
    '\if :stop', '\echo stopped', '\q', '\endif', '') x 50_000);
my $writer = IPC::Run::start(
    [ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1',
        '-d', $node->connstr('postgres') . ' application_name=writer',
        '-f', "$directory/script" ],
    '>', "$directory/output", '2>', "$directory/errors");

# (a writer that failed is none of this function's business)
sub wait_for_more_writes
{
    my $written = "FROM inbox.sequenced_message WHERE id > $history";
    my $count = $node->safe_psql('postgres', "SELECT count(*) $written");

    $node->poll_query_until('postgres', qq{
        SELECT (SELECT count(*) > $count + 50 $written)
               OR NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'writer')})
      or die 'the writer does not get on';
    return;
}

# What a scan or a rewrite of the history would change.
sub traces
{
    return $node->safe_psql('postgres', q{
        SELECT seq_scan, pg_relation_filenode(relid) FROM pg_stat_user_tables
         WHERE relid = 'inbox.sequenced_message'::regclass});
}

wait_for_more_writes();
my $traces = traces();
my $start = time;
my ($pid) = $node->safe_psql('postgres',
    q{SELECT seqinbox_create_inbox('inbox'); SELECT pg_backend_pid()}) =~ /(\d+)/;
my $duration = time - $start;

# a session's statistics are complete when it has ended
$node->poll_query_until('postgres',
    "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)");
is(traces(), $traces, 'the history was neither scanned nor rewritten');
wait_for_more_writes();

# a complete inbox needs no lock that would wait for a transaction
my $open = open_session($node);
in_session($open, "BEGIN; $insert");
my $catalog_rows = catalog_rows($node, 'inbox');
is( sql_error($node, q{SET statement_timeout = '60s'; SELECT seqinbox_create_inbox('inbox')}),
    'no error', 'a second call waits for nobody');
is(catalog_rows($node, 'inbox'), $catalog_rows, 'and changes nothing');
in_session($open, 'COMMIT');
$open->quit;

$node->safe_psql('postgres', 'INSERT INTO stop DEFAULT VALUES');
$writer->finish;
is($writer->result(0), 0, 'all inserts of the other program succeeded');
like(slurp_file("$directory/output"), qr/^stopped$/m, 'and it went on to the end');

diag(sprintf('adoption of %d messages took %.3f s', $history, $duration));
diag('longest pause of the writer: ' . $node->safe_psql('postgres', q{
    SELECT max(created_at - previous)
      FROM (SELECT created_at, lag(created_at) OVER (ORDER BY id) AS previous
              FROM inbox.sequenced_message WHERE idempotence_id LIKE 'written-%') AS writes}));

# the two records of an ID are those numbered n and n + duplicates
is( $node->safe_psql('postgres', qq{
        SET search_path = inbox;
        SELECT count(*), bool_and(l.id = n + $duplicates),
               bool_and(seqinbox_claim('OrderCreated', 'message-' || n + $duplicates, 1))
          FROM generate_series(1, $duplicates) AS n,
               seqinbox_lookup('OrderCreated', 'message-' || n + $duplicates) AS l}),
    "$duplicates|t|t", 'each duplicated ID is found once and can be claimed');

# Transactions that are open when an adoption begins, and that use the tables
# in one order or the other, do not fail, and neither does the adoption.
my %orders = (
    'instance first' => [ 'sequence_instance', 'sequenced_message' ],
    'message first' => [ 'sequenced_message', 'sequence_instance' ]);

foreach my $name (sort keys %orders)
{
    (my $schema = $name) =~ tr/ /_/;
    my ($first, $second) = map { "UPDATE $schema.$_ SET state = state" } @{ $orders{$name} };

    create_historical_inbox($node, $schema, 'V5');
    my $program = open_session($node);
    is(in_session($program, "BEGIN; $first"), '', "$name: the first statement succeeds");

    my $adoption = IPC::Run::start(
        [ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'),
            '-c', "SELECT seqinbox_create_inbox('$schema')" ],
        '>', '/dev/null', '2>', "$directory/errors");
    $node->poll_query_until('postgres', q{
        SELECT count(*) = 1 FROM pg_stat_activity
         WHERE query LIKE 'SELECT seqinbox_create_inbox%' AND state = 'active'
           AND wait_event IS NOT NULL})
      or die 'adoption does not wait';
    is(in_session($program, $second), '', "$name: the second statement succeeds");
    is(in_session($program, 'COMMIT'), '', "$name: and so does their transaction");
    $program->quit;
    $adoption->finish;
    is($adoption->result(0), 0, "$name: the adoption succeeds");
}

done_testing();
