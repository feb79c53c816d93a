# On a standby every function that writes fails with 25006; after promotion
# committed claims hold.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxSql;
use SeqinboxTest;

my $primary = new_node('primary', init => [ allows_streaming => 1 ]);

$primary->safe_psql('postgres', q{
    CREATE EXTENSION seqinbox;
    SELECT seqinbox_create_inbox('inbox');
    SET search_path = inbox;
    SELECT seqinbox_declare('{"sequences": [{"name": "OrderSequence", "retentionPeriod": "24h",
        "messages": [{"type": "OrderCreated"}]}]}');
    SELECT seqinbox_open_instance('OrderSequence', 'order-1') AS instance \gset
    SELECT seqinbox_claim('OrderCreated', 'waiting', :instance);
    SELECT seqinbox_store('OrderCreated', 'waiting', :instance, 'WAITING', message_value => 'v');
    SELECT seqinbox_claim('Webhook', 'claimed')});
$primary->backup('backup');

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

$primary->safe_psql('postgres', q{
    SET search_path = inbox;
    SELECT seqinbox_claim('Webhook', 'claimed while streaming')});
$primary->wait_for_catchup($standby);

# messages and instances are named by what they have been given above
my $instance = $primary->safe_psql('postgres',
    q{SELECT id FROM inbox.sequence_instance WHERE context_id = 'order-1'});
my $message = $primary->safe_psql('postgres', 'SELECT id FROM inbox.sequenced_message');

my %calls = (
    'claim' => qq{SELECT seqinbox_claim('OrderCreated', 'new', $instance)},
    'claim of a duplicate' => qq{SELECT seqinbox_claim('OrderCreated', 'waiting', $instance)},
    'claim without an instance' => q{SELECT seqinbox_claim('Webhook', 'new')},
    'try_claim' => qq{SELECT seqinbox_try_claim('OrderCreated', 'new', $instance)},
    'try_claim of a duplicate' => qq{SELECT seqinbox_try_claim('OrderCreated', 'waiting', $instance)},
    'try_claim without an instance' => q{SELECT seqinbox_try_claim('Webhook', 'new')},
    'open_instance' => q{SELECT seqinbox_open_instance('OrderSequence', 'new')},
    'open_instance of an existing one' => q{SELECT seqinbox_open_instance('OrderSequence', 'order-1')},
    'store' => qq{SELECT seqinbox_store('OrderCreated', 'new', $instance, 'PROCESSED')},
    'fail_and_release' => qq{SELECT seqinbox_fail_and_release($message)},
    'record_failure' => q{SELECT seqinbox_record_failure('OrderCreated', 'new', 'order-1', 'e')},
    'declare' => q{
        SELECT seqinbox_declare('{"sequences": [{"name": "New", "retentionPeriod": "24h",
            "messages": [{"type": "New"}]}]}')},
    'receive' => q{SELECT seqinbox_receive('OrderCreated', 'new', 'order-1', 'v')},
    'receive of a duplicate' => q{SELECT seqinbox_receive('OrderCreated', 'waiting', 'order-1', 'v')},
    'receive_batch' => q{
        SELECT seqinbox_receive_batch(ARRAY['OrderCreated'], ARRAY['new'], ARRAY['order-1'], ARRAY['v']::bytea[])},
    'next' => q{SELECT * FROM seqinbox_next()},
    'next of an instance' => qq{SELECT * FROM seqinbox_next($instance)},
    'consume' => qq{SELECT seqinbox_consume($message)},
    'expire' => qq{SELECT seqinbox_expire($message)},
    'retry' => qq{SELECT seqinbox_retry($message)},
    'consume_all' => qq{SELECT seqinbox_consume_all($instance)},
    'close' => qq{SELECT seqinbox_close($instance)},
    'create_inbox' => q{SELECT seqinbox_create_inbox('new inbox')},
    'create_inbox of an existing one' => q{SELECT seqinbox_create_inbox('inbox')});

foreach my $call (sort keys %calls)
{
    my $sql = "SET search_path = inbox; $calls{$call}";

    like(sql_error($standby, $sql), qr/ERROR:  25006: /, "standby: $call");
    like(sql_error($primary, "SET default_transaction_read_only = on; $sql"),
        qr/ERROR:  25006: /, "read-only transaction on the primary: $call");
}

is( $standby->safe_psql('postgres', qq{
        SET search_path = inbox;
        SELECT state FROM seqinbox_lookup('OrderCreated', 'waiting');
        SELECT idempotence_id FROM seqinbox_waiting();
        SELECT seqinbox_is_releasable('OrderCreated', $instance);
        SELECT seqinbox_diagram('OrderSequence') <> ''}),
    "WAITING\nwaiting\nt\nt", 'standby: what only reads, works');

$primary->stop('immediate');
$standby->promote;

is( $standby->safe_psql('postgres', q{
        SET search_path = inbox;
        SELECT seqinbox_claim('Webhook', 'claimed'), seqinbox_try_claim('Webhook', 'claimed'),
               seqinbox_claim('Webhook', 'claimed while streaming'),
               seqinbox_claim('OrderCreated', 'waiting',
                   seqinbox_open_instance('OrderSequence', 'order-1'))}),
    'f|DUPLICATE|f|f', 'promoted: committed claims hold');
is( $standby->safe_psql('postgres', qq{
        SET search_path = inbox;
        SELECT seqinbox_claim('Webhook', 'new'), seqinbox_try_claim('Webhook', 'newer'),
               seqinbox_open_instance('OrderSequence', 'order-2') > $instance;
        SELECT seqinbox_fail_and_release($message, 'e');
        SELECT state FROM seqinbox_lookup('OrderCreated', 'waiting')}),
    "t|CLAIMED|t\nt\nFAILED", 'promoted: the inbox goes on');

done_testing();
