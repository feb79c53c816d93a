# A short torture run. test/torture/README.md describes it; arguments are those
# of test/torture/run.

use strict;
use warnings;

use File::Basename;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxTest;

need_psycopg();

# The servers' logs name the SQLSTATE of each error, for the checker, and who
# waited for whom, for its reader. Deadlocks, where they may be, would hold the
# consumers up for most of the time if they were not looked for so soon. The
# WAL must fit on a small disk, and soon needs space when that is full.
my $primary = new_node('primary',
    init => [ allows_streaming => 1, extra => [ '--wal-segsize=1' ] ],
    disk => 1,
    conf => q{
        restart_after_crash = on
        max_connections = 100
        shared_buffers = 64MB
        max_wal_size = 64MB
        min_wal_size = 2MB
        wal_keep_size = 64MB
        wal_retrieve_retry_interval = 100ms
        deadlock_timeout = 100ms
        log_statement = none
        log_lock_waits = on
        log_error_verbosity = verbose
        log_line_prefix = '%m [%p] %e '
    });
my $standby = new_standby('standby', $primary, disk => 2);

# A commit waits for the standby.
foreach my $node ($standby, $primary)
{
    $node->append_conf('postgresql.conf', "synchronous_standby_names = '*'\n");
    $node->reload;
}

sub server
{
    my ($node) = @_;

    return ($node->data_dir, $node->host, $node->port, $node->logfile);
}

$ENV{PYTHONDONTWRITEBYTECODE} = 1;

my $pid = open(my $output, '-|', 'python3',
    dirname(__FILE__) . '/../torture/torture.py',
    '--primary' => server($primary),
    '--standby' => server($standby),
    '--journal' => "$PostgreSQL::Test::Utils::log_path/080_torture_journal.log",
    @ARGV)
  or die "cannot run python3: $!";

# Whoever ends this test, ends the run and, by an orderly exit, the servers.
foreach my $signal (qw(HUP INT TERM))
{
    $SIG{$signal} = sub { kill('TERM', $pid); die "ended by SIG$signal\n" };
}

while (my $line = <$output>)
{
    chomp $line;
    note($line);
}
close($output);
is($?, 0, 'no problem was found');

done_testing();
