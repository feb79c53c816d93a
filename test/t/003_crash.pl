# Whatever kills the server under load, each committed claim survives with
# the business row of its transaction, and each uncommitted one is free.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxLoad;
use SeqinboxSql;
use SeqinboxTest;

my $node = new_node('main', conf => "restart_after_crash = on\n");
create_load($node);

my %strikes = (
    'immediate shutdown' => sub {
        $node->stop('immediate');
        return sub { $node->start };
    },
    'kill -9 of a backend' => sub {
        my $pid = $node->safe_psql('postgres', q{
            SELECT pid FROM pg_stat_activity
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() LIMIT 1});
        is(kill('KILL', $pid), 1, 'backend killed');
        return sub { $node->poll_query_until('postgres', 'SELECT true') };
    },
    'kill -9 of the postmaster' => sub {
        my @pids = kill_server($node);
        return sub { wait_for_end_of(@pids); $node->start };
    });

my $round = 0;
foreach my $strike (sort keys %strikes)
{
    note($strike);
    $round++;

    my @clients = start_clients($node, $round);
    my $open = open_session($node);
    is( in_session($open, qq{
            BEGIN;
            SET LOCAL search_path = inbox, public;
            INSERT INTO business VALUES ('$round-open');
            SELECT seqinbox_claim('Load', '$round-open')}),
        't', 'one more transaction is open');

    my $restart = $strikes{$strike}->();
    my @acknowledged = finish_clients(@clients);
    $open->quit;
    $restart->();

    is($node->safe_psql('postgres', "SELECT count(*) FROM business WHERE delivery = '$round-open'"),
        '0', "$strike: the open transaction is gone");
    check_load($node, $round, $strike, \@acknowledged, "$round-open");
}

done_testing();
