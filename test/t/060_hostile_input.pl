# Hostile input for every function: nasty and random arguments, declarations
# and trace contexts. test/hostile/README.md describes it.
#
# Options are those of test/hostile/run, which gives it more time: the seed, and
# how many seconds each random part takes. Without them, each has a fixed number
# of rounds.

use strict;
use warnings;

use File::Basename;
use Getopt::Long;
use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxTest;

need_psycopg();

my $directory = dirname(__FILE__) . '/../hostile';
my %rounds = (arguments => undef, calls => 4000, declarations => 1000, tables => 60,
    traceparents => 2000);
my ($seed, $duration);
GetOptions('seed=i' => \$seed, 'duration=i' => \$duration) or die "wrong option\n";

my $node = new_node('main', conf => q{
    restart_after_crash = on
    fsync = off
    autovacuum = off
    log_statement = none
    log_error_verbosity = verbose
    log_line_prefix = '%m [%p] %e '
});
$node->safe_psql('postgres', slurp_file("$directory/inbox.sql"));

$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
$ENV{PYTHONDONTWRITEBYTECODE} = 1;

# Whoever ends this test, ends the part and, by an orderly exit, the server.
my $pid;
foreach my $signal (qw(HUP INT TERM))
{
    $SIG{$signal} = sub { kill('TERM', $pid) if $pid; die "ended by SIG$signal\n" };
}

sub run_part
{
    my ($part, @options) = @_;
    my $log = -s $node->logfile;

    $node->safe_psql('template1', "CREATE DATABASE $part TEMPLATE postgres");
    local $ENV{PGDATABASE} = $part;
    $pid = open(my $output, '-|', 'python3', "$directory/hostile.py", $part, @options)
      or die "cannot run python3: $!";
    while (my $line = <$output>)
    {
        chomp $line;
        note($line);
    }
    close($output);
    $pid = undef;
    is($?, 0, "$part: no problem was found");

    my $messages = substr(slurp_file($node->logfile), $log);
    unlike($messages, qr/ XX\d\d\d (?:ERROR|FATAL)|PANIC: |TRAP: |terminated by signal/,
        "$part: no internal error, no crash");
    return;
}

foreach my $part (sort keys %rounds)
{
    my @options;

    push @options, "--seed=$seed" if defined $seed;
    push @options, "--rounds=$rounds{$part}" if $rounds{$part};
    push @options, "--duration=$duration" if $duration;
    run_part($part, @options);
}

# The largest arguments take some GB of memory, and a minute.
run_part('large') if $duration;

done_testing();
