# A short torture run. test/torture/README.md describes it; arguments are those
# of test/torture/run.

use strict;
use warnings;

use File::Basename;
use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxTest;

# The server's log names the SQLSTATE of each error, for the checker, and who
# waited for whom, for its reader. Deadlocks, where they may be, would hold the
# consumers up for most of the time if they were not looked for so soon.
my $node = new_node('main', conf => q{
    restart_after_crash = on
    max_connections = 100
    shared_buffers = 64MB
    deadlock_timeout = 100ms
    log_statement = none
    log_lock_waits = on
    log_error_verbosity = verbose
    log_line_prefix = '%m [%p] %e '
});

$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
$ENV{PGDATABASE} = 'postgres';
$ENV{PYTHONDONTWRITEBYTECODE} = 1;

my $pid = open(my $output, '-|', 'python3',
    dirname(__FILE__) . '/../torture/torture.py',
    '--server-log' => $node->logfile,
    '--journal' => "$PostgreSQL::Test::Utils::log_path/080_torture_journal.log",
    @ARGV)
  or die "cannot run python3: $!";

# Whoever ends this test, ends the run and, by an orderly exit, the server.
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
