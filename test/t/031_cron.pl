# The recipe for pg_cron of docs/monitoring.md works: a job of pg_cron's
# background workers does the housekeeping of an inbox as an ordinary role.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxTest;

chomp(my $sharedir = `pg_config --sharedir`);
plan skip_all => 'pg_cron is not installed' unless -e "$sharedir/extension/pg_cron.control";

my $node = new_node('main', conf => q{
shared_preload_libraries = 'pg_cron'
cron.use_background_workers = on
});
$node->safe_psql('postgres', q{CREATE EXTENSION pg_cron; CREATE DATABASE shop});

plan skip_all => 'pg_cron is too old'
  if $node->safe_psql('postgres', q{SELECT count(*) FROM pg_proc WHERE proname = 'schedule_in_database'}) == 0;

# two orders, each with a message that waits; one is long past its retention
$node->safe_psql('shop', q{
    CREATE EXTENSION seqinbox;
    SELECT seqinbox_create_inbox('orders');
    SET search_path = orders;
    SELECT seqinbox_declare('{"sequences": [{"name": "OrderSequence", "retentionPeriod": "24h", "messages": [
        {"type": "OrderPlaced"},
        {"type": "OrderShipped", "releaseCondition": {"predecessor": "OrderPlaced"}}]}]}');
    SELECT seqinbox_receive('OrderShipped', 'old-1', 'old', '\x00');
    SELECT seqinbox_receive('OrderShipped', 'young-1', 'young', '\x00');
    UPDATE sequence_instance
       SET created_at = created_at - interval '9 days', retain_until = retain_until - interval '9 days'
     WHERE context_id = 'old';
    UPDATE sequential_inbox_idempotence
       SET created_at = created_at - interval '9 days'
     WHERE idempotence_id = 'old-1'});

# The SQL of the recipe, as it is documented.
sub recipe
{
    my $text = slurp_file("$FindBin::RealBin/../../docs/monitoring.md");
    my ($section) = $text =~ /^## pg_cron\n(.*?)(?=^## |\z)/ms;

    return $section =~ /^```sql notest\n(.*?)^```\n/msg;
}

my ($in_shop, $in_postgres) = recipe();
$node->safe_psql('shop', $in_shop);

# the recipe's schedule is not made for a test that waits for it
ok($in_postgres =~ s{'\*/\d+ \* \* \* \*'}{'* * * * *'}, 'the recipe has a schedule');
$node->safe_psql('postgres', $in_postgres);

ok( $node->poll_query_until('shop', q{
        SELECT NOT EXISTS (SELECT 1 FROM orders.sequence_instance WHERE context_id = 'old')}),
    'the expired instance is removed');
is( $node->safe_psql('shop', q{SELECT context_id FROM orders.sequence_instance WHERE name = 'OrderSequence'}),
    'young', 'the other one stays');
is( $node->safe_psql('shop', q{SELECT context_id, idempotence_id, state FROM orders.dead_letter}),
    'old|old-1|WAITING', 'what waited in it is a dead letter');

ok( $node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM cron.job_run_details WHERE end_time IS NOT NULL}),
    'the run has ended');
is( $node->safe_psql('postgres', q{
        SELECT DISTINCT database, username, status FROM cron.job_run_details WHERE end_time IS NOT NULL}),
    'shop|orders_housekeeper|succeeded', 'without an error, as the role of the recipe');
like(slurp_file($node->logfile),
    qr/LOG:  housekeeping of inbox "orders": 0 instances closed, 1 marked, 1 removed; 1 dead letters made, 0 purged/,
    'and the log tells what it did');
note($node->safe_psql('postgres', 'SELECT * FROM cron.job_run_details'));

$node->stop;
done_testing();
