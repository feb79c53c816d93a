# A million claims leave the memory of their backend as it was after the first
# ten thousand, in many transactions and in one.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxTest;

my $node = new_node('main', conf => "autovacuum = off\nlog_statement = none\nmax_wal_size = 4GB\n");
plan skip_all => 'pg_backend_memory_contexts is new in PostgreSQL 14'
  if $node->safe_psql('postgres', 'SHOW server_version_num') < 140000;

$node->safe_psql('postgres', q{
    CREATE EXTENSION seqinbox;
    SELECT seqinbox_create_inbox('inbox');
    SET search_path = inbox;
    SELECT seqinbox_open_instance('OrderSequence', 'order-1', '1 day')});

my $instance = $node->safe_psql('postgres',
    q{SELECT id FROM inbox.sequence_instance WHERE context_id = 'order-1'});

# A session that claims as often as it is told, and measures its own memory
# after the first ten thousand claims and after the last. Left out is the
# context in which PL/pgSQL itself keeps some bytes for each COMMIT.
sub start_claiming
{
    my ($claim, $claims, $after_each) = @_;
    my %session = (
        script => qq{
            SET search_path = inbox;
            CREATE TEMPORARY TABLE measured (claims int, won int, bytes bigint, plans bigint);
            DO \$\$
            DECLARE
                won int = 0;
            BEGIN
                FOR n IN 1 .. $claims LOOP
                    IF $claim THEN
                        won = won + 1;
                    END IF;
                    $after_each
                    IF n IN (1, 10000, $claims) THEN
                        INSERT INTO measured
                        SELECT n, won, sum(total_bytes), count(*) FILTER (WHERE name = 'CachedPlanSource')
                          FROM pg_backend_memory_contexts
                         WHERE name <> 'SPI Proc';
                    END IF;
                END LOOP;
            END \$\$;
            SELECT max(won), max(bytes) - min(bytes), max(plans) - min(plans)
              FROM measured WHERE claims > 1;
        },
        result => '');

    $session{process} = IPC::Run::start(
        [ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres') ],
        '<', \$session{script}, '>', \$session{result});
    return \%session;
}

sub check_memory
{
    my ($session, $claims, $name) = @_;

    $session->{process}->finish;
    my ($won, $bytes, $plans) = split /\|/, $session->{result};
    is($won, $claims, "$name: $claims claims");
    cmp_ok($bytes, '<', $claims / 2, "$name: not even a byte per claim stays");
    cmp_ok($plans, '==', 0, "$name: the number of plans is the same");
    return;
}

my $transactions = start_claiming(
    q{seqinbox_claim('Webhook', n::text)}, 1_000_000, 'IF n % 10 = 0 THEN COMMIT; END IF;');
my $transaction = start_claiming(
    qq{seqinbox_claim('OrderCreated', n::text, $instance)}, 1_000_000, '');
check_memory($transaction, 1_000_000, 'in one transaction');
check_memory($transactions, 1_000_000, 'in many transactions');

my $tries = start_claiming(
    q{seqinbox_try_claim('Email', n::text) = 'CLAIMED'}, 60_000, 'COMMIT;');
my $records = start_claiming(
    qq{seqinbox_store('OrderCreated', 'm' || n, $instance, 'WAITING', message_value => 'v',
           header_names => ARRAY['h'], header_values => ARRAY['v']::bytea[]) > 0},
    60_000, 'COMMIT;');
check_memory($tries, 60_000, 'try_claim');
check_memory($records, 60_000, 'store');

done_testing();
