# SeqinboxLoad: clients at work on an inbox whose server is about to fail, and
# what must be true of their claims afterwards.

package SeqinboxLoad;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw(create_load start_clients finish_clients check_load
  kill_server wait_for_end_of);

use constant {
    CLIENTS => 6,
    DELIVERIES => 6000,
    COMMITTED_BEFORE_STRIKE => 300,
};

# those of each client, by round
my %deliveries;

# An inbox, and a business table for the handlers.
sub create_load
{
    my ($node) = @_;

    $node->safe_psql('postgres', q{
        CREATE EXTENSION seqinbox;
        SELECT seqinbox_create_inbox('inbox');
        CREATE TABLE business (delivery text)});
    return;
}

# One delivery: claim and business row in one transaction. "ack" is what the
# client knows to be committed; every tenth delivery ends in a rollback.
sub delivery
{
    my ($id, $end) = @_;

    return qq{BEGIN;
SELECT seqinbox_claim('Load', '$id') AS claimed \\gset
\\if :claimed
INSERT INTO business VALUES ('$id');
\\endif
$end;
} . ($end eq 'COMMIT' ? "\\echo ack $id\n" : '');
}

# Each delivery comes twice, to two clients, so that they meet at its claim.
# The rollbacks are the first of the two's, the other one can take over.
sub client_script
{
    my ($round, $client) = @_;
    my $other = ($client + 1) % CLIENTS;
    my $script = "SET search_path = inbox, public;\n";

    foreach my $n (1 .. $deliveries{$round})
    {
        $script .= delivery("$round-$client-$n", $n % 10 == 0 ? 'ROLLBACK' : 'COMMIT');
        $script .= delivery("$round-$other-$n", 'COMMIT');
    }
    return $script;
}

# Clients that are at work, and have enough to do for a strike that takes its time
# if they are told to do it so many times.
sub start_clients
{
    my ($node, $round, $times) = @_;
    my @clients;

    $deliveries{$round} = ($times // 1) * DELIVERIES / CLIENTS;
    foreach my $number (0 .. CLIENTS - 1)
    {
        my $directory = PostgreSQL::Test::Utils::tempdir;

        append_to_file("$directory/script", client_script($round, $number));
        my $process = IPC::Run::start(
            [ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1',
                '-d', $node->connstr('postgres'), '-f', "$directory/script" ],
            '>', "$directory/acknowledged", '2>', "$directory/errors");
        push @clients, { process => $process, acknowledged => "$directory/acknowledged" };
    }
    $node->poll_query_until('postgres',
        'SELECT count(*) > ' . COMMITTED_BEFORE_STRIKE
          . " FROM business WHERE delivery LIKE '$round-%'")
      or die 'clients do not get on';
    return @clients;
}

# What the clients got acknowledged. None may have come to the end.
sub finish_clients
{
    my @clients = @_;
    my %acknowledged;
    my $cut = 0;

    foreach my $client (@clients)
    {
        $client->{process}->finish;
        $cut++ if $client->{process}->result(0) != 0;
        $acknowledged{$_} = 1
          foreach slurp_file($client->{acknowledged}) =~ /^ack (\S+)$/mg;
    }
    is($cut, CLIENTS, 'all clients lost their server at work');
    return sort keys %acknowledged;
}

# Delivers everything of a round again, and the others that are named: what is
# there agrees, and has all that was acknowledged.
sub check_load
{
    my ($node, $round, $strike, $acknowledged, @others) = @_;

    cmp_ok(scalar @$acknowledged, '>', COMMITTED_BEFORE_STRIKE / 2,
        "$strike: clients had commits acknowledged");
    is( $node->safe_psql('postgres', qq{
            SELECT count(*) FILTER (WHERE b.delivery IS NULL),
                   count(*) FILTER (WHERE c.idempotence_id IS NULL)
              FROM business b
              FULL JOIN inbox.sequential_inbox_idempotence c ON c.idempotence_id = b.delivery}),
        '0|0', "$strike: claims and business rows agree");
    is( $node->safe_psql('postgres',
            'SELECT count(*) - count(DISTINCT delivery) FROM business'),
        '0', "$strike: nothing was processed twice");

    my $values = join(',', map { "('$_')" } @$acknowledged);
    is( $node->safe_psql('postgres', qq{
            SELECT count(*) FROM (VALUES $values) AS acknowledged (delivery)
             WHERE delivery NOT IN (SELECT delivery FROM business)}),
        '0', "$strike: all that was acknowledged is there");

    my $others = join(' ', map { "UNION ALL VALUES ('$_')" } @others);
    is( $node->safe_psql('postgres', qq{
            SET search_path = inbox, public;
            CREATE TEMPORARY TABLE again AS
            SELECT d.id, seqinbox_claim('Load', d.id) AS claimed
              FROM (SELECT concat_ws('-', $round, client, n) AS id
                      FROM generate_series(0, @{[ CLIENTS - 1 ]}) AS client,
                           generate_series(1, $deliveries{$round}) AS n
                    $others) AS d;
            SELECT bool_or(claimed), bool_or(NOT claimed),
                   bool_and(claimed = (b.delivery IS NULL))
              FROM again LEFT JOIN business b ON b.delivery = again.id;
            INSERT INTO business SELECT id FROM again WHERE claimed}),
        't|t|t', "$strike: committed claims answer duplicate, all others are free");
    return;
}

# kill -9 of the postmaster. Returns what else belongs to the server and ends
# when it notices.
sub kill_server
{
    my ($node) = @_;
    my @pids = split /\n/, $node->safe_psql('postgres',
        'SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()');

    push @pids, $node->{_pid};
    $node->kill9;
    return @pids;
}

# Only when the last process of a killed server has noticed, a new one can use
# its data directory.
sub wait_for_end_of
{
    my @pids = @_;

    foreach my $attempt (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
    {
        return unless kill(0, @pids);
        usleep(100_000);
    }
    die 'processes of the killed server do not end';
}

1;
