# The primary is lost under load, and its synchronous standby promoted: all
# that was acknowledged is there, and clients find the new primary by
# themselves. A commit whose wait for the standby was cancelled is not there.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxLoad;
use SeqinboxSql;
use SeqinboxTest;

my $primary = new_node('primary', init => [ allows_streaming => 1 ], conf => "max_connections = 30\n");
create_load($primary);

# A standby without which no commit is reported, unless told otherwise.
sub synchronous_standby
{
    my ($name, $node) = @_;
    my $standby = new_standby($name, $node);

    $node->append_conf('postgresql.conf', "synchronous_standby_names = '$name'\n");
    $node->reload;
    $node->poll_query_until('postgres',
        "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
      or die 'the standby is not synchronous';
    return $standby;
}

sub lose
{
    my ($node, @clients) = @_;
    my @pids = kill_server($node);
    my @acknowledged = @clients ? finish_clients(@clients) : ();

    wait_for_end_of(@pids);
    return @acknowledged;
}

sub promote
{
    my ($node) = @_;

    # it waits for no standby of its own
    $node->append_conf('postgresql.conf', "synchronous_standby_names = ''\n");
    $node->reload;
    $node->promote;
    return;
}

my $standby = synchronous_standby('standby', $primary);
my $both = 'host=' . join(',', map { $_->host } $primary, $standby)
  . ' port=' . join(',', map { $_->port } $primary, $standby)
  . ' dbname=postgres target_session_attrs=read-write';

sub where_clients_go
{
    my ($stdout) = run_command([ 'psql', '-XAtq', '-d', $both, '-c', 'SHOW port' ]);

    return $stdout;
}

my @clients = start_clients($primary, 1);
is(where_clients_go(), $primary->port, 'clients go to the primary');
my @acknowledged = lose($primary, @clients);
promote($standby);
is(where_clients_go(), $standby->port, 'and to the promoted standby, by the same string');
check_load($standby, 1, 'promotion', \@acknowledged);

# The wait for the standby is cancelled, and the commit reported as done, with
# a warning. Everybody on that primary sees the claim.

my $second = synchronous_standby('second', $standby);
$second->stop('immediate');

my $session = open_session($standby);
$session->query_until(qr/asked/, q{
\echo asked
SET search_path = inbox;
SET statement_timeout = '1s';
SELECT seqinbox_claim('Load', 'local');
});
# longer than the timeout, which doesn't count here
$standby->poll_query_until('postgres', q{
    SELECT count(*) = 1 FROM pg_stat_activity
     WHERE wait_event = 'SyncRep' AND clock_timestamp() - query_start > interval '2 seconds'})
  or die 'the commit does not wait';
$standby->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
is($session->query(q{SELECT 'and then'}), "t\nand then", 'a cancelled commit is reported as done');
like($session->{stderr}, qr/WARNING:  01000: canceling wait for synchronous replication due to user request/,
    'with a warning');
my $claim = q{SET search_path = inbox; SELECT seqinbox_try_claim('Load', 'local')};
is($standby->safe_psql('postgres', $claim), 'DUPLICATE', 'it counts on that primary');
$session->{stderr} = '';
$session->quit;

lose($standby);
$second->start;
promote($second);
is($second->safe_psql('postgres', $claim), 'CLAIMED', 'and is lost with it');

done_testing();
