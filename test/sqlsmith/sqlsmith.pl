# sqlsmith makes up queries over a filled inbox, as superuser and as the role of
# an application. It is a failure when the server crashes, an assertion fails,
# or an internal error (SQLSTATE XX...) comes from this extension: from one of
# its source files, or from a statement that it ran. Internal errors that are
# the server's own are shown, but are no failure.
#
# Options are those of test/sqlsmith/run.

use strict;
use warnings;

use File::Basename;
use Getopt::Long;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes 'time';

use SeqinboxTest;

use constant QUERIES => 1000;    # of one call of sqlsmith

my $directory = dirname(__FILE__);
my ($duration, $seed) = (300, int(rand(1_000_000)));
GetOptions('duration=i' => \$duration, 'seed=i' => \$seed) or die "wrong option\n";
note("seed $seed");

my %own_files = map { basename($_) => 1 } glob("$directory/../../src/*.[ch]");

# Whoever ends this, ends the server by an orderly exit.
foreach my $signal (qw(HUP INT TERM))
{
    $SIG{$signal} = sub { die "ended by SIG$signal\n" };
}

my $node = new_node('main', conf => q{
    restart_after_crash = on
    fsync = off
    autovacuum = off
    track_functions = all
    log_statement = none
    log_error_verbosity = verbose
    log_line_prefix = '%m [%p] %e '
});
my ($values, $errors);
IPC::Run::run([ 'python3', "$directory/../hostile/values.py" ], '>', \$values) or die "no values\n";
foreach my $sql (slurp_file("$directory/../hostile/inbox.sql"), slurp_file("$directory/schema.sql") . $values,
    'GRANT USAGE ON SCHEMA smith TO app; GRANT SELECT ON ALL TABLES IN SCHEMA smith TO app')
{
    my ($out, $err);
    IPC::Run::run([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres') ],
        '<', \$sql, '>', \$out, '2>', \$err) or die $err;
}

my %kinds;
my (@own, @foreign, @crashes);

# The server's messages since the last look, each with the lines that belong to
# it. They are many, so they are thrown away then.
sub messages
{
    my $log = slurp_file($node->logfile);

    truncate($node->logfile, 0);
    return split /^(?=\d{4}-\d\d-\d\d [^\n]* (?:[0-9A-Z]{5}) (?:ERROR|FATAL|PANIC|LOG|WARNING|NOTICE|INFO):  )/m,
      $log;
}

sub look_at_messages
{
    foreach my $message (messages())
    {
        $message =~ /\A\S+ \S+ \S+ \[\d+\] (\w{5}) (\w+): / or next;
        my ($sqlstate, $level) = ($1, $2);

        push @crashes, $message
          if $level eq 'PANIC' || $message =~ /TRAP: |was terminated by signal/;
        next if $level eq 'LOG';
        $kinds{$sqlstate}++;
        next if $sqlstate !~ /^XX/;
        my ($file) = $message =~ /LOCATION:  \w+, ([\w.]+):\d+/;
        my $is_own = $own_files{ $file // '' } || $message =~ /CONTEXT:  SQL statement ".*inbox\./;
        push @{ $is_own ? \@own : \@foreign }, $message;
    }
    return;
}

# One call of sqlsmith; what it prints has a letter for each query.
sub run_sqlsmith
{
    my ($role, $seconds) = @_;
    my $target = $node->connstr('postgres') . " user=$role options='-c search_path=smith,inbox,pg_catalog'";
    my $output = '';
    my $run = IPC::Run::start(
        [ 'sqlsmith', "--target=$target", '--exclude-catalog', '--verbose', "--seed=$seed",
            '--max-queries=' . QUERIES ],
        '>', '/dev/null', '2>', \$output, IPC::Run::timer($seconds, name => 'end'));

    eval { $run->finish; 1 } or do {
        die $@ if $@ !~ /^IPC::Run: .*end/;
        $run->kill_kill(grace => 2);
    };
    $seed++;
    return $output;
}

my $superuser = $node->safe_psql('postgres', 'SELECT current_user');
my $calls = 'SELECT p.proname, coalesce(s.calls, 0) FROM smith.pg_proc p'
  . ' LEFT JOIN pg_stat_user_functions s ON s.funcid = p.oid'
  . q{ WHERE p.proname LIKE 'seqinbox%' ORDER BY 1};

# an error would only be the end of sqlsmith
look_at_messages();
foreach my $role ($superuser, 'app')
{
    my $end = time() + $duration / 2;
    my ($queries, $runs) = (0, 0);

    while ((my $left = $end - time()) > 1 && !@own && !@crashes)
    {
        my $output = run_sqlsmith($role, $left);

        note($output) if $runs == 0;
        $queries += $output =~ tr/.//;
        $runs++;
        look_at_messages();
    }
    note("$role: about $queries queries in $runs runs");
}

note("$kinds{$_} errors $_") foreach sort keys %kinds;
note("the server's own: " . join(' ', (split /\n/)[0, 1])) foreach @foreign;
foreach my $line (split /\n/, $node->safe_psql('postgres', $calls))
{
    my ($function, $count) = split /\|/, $line;

    note("$count calls of $function returned");
}
is(join("\n", @crashes), '', 'no crash, no failed assertion');
is(join("\n", @own), '', 'no internal error of this extension');
done_testing();
