# Nothing depends on the texts of messages: the regression tests have the same
# results and SQLSTATEs on a server that speaks German.

use strict;
use warnings;

use File::Basename;
use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxTest;

my @tests = sort glob("$FindBin::RealBin/../../sql/*.sql");

# A locale of our own, since few machines have that one.
my $locales = PostgreSQL::Test::Utils::tempdir();
plan skip_all => 'a German locale cannot be made'
  if system('localedef', '-i', 'de_DE', '-f', 'UTF-8', "$locales/de_DE.UTF-8") != 0;
$ENV{LOCPATH} = $locales;

my %english = (FEHLER => 'ERROR', HINWEIS => 'NOTICE', WARNUNG => 'WARNING');

sub start
{
    my ($language) = @_;

    return new_node($language, conf => "lc_messages = '$language'\nfsync = off\n");
}

# What a test prints, with SQLSTATEs instead of texts.
sub output
{
    my ($node, $test) = @_;
    my $script = "\\set VERBOSITY sqlstate\n" . slurp_file($test);
    my $output = '';

    $script =~ s/^(\\set VERBOSITY) \w+$/$1 sqlstate/mg;
    IPC::Run::run([ 'psql', '-X', '-A', '-a', '-q', '-d', $node->connstr('postgres') ],
        '<', \$script, '>', \$output, '2>&1');
    # the server may have a translation of the same message
    $output =~ s/\b(22004) [^|\n]*/$1/g;
    # a detail of ours may quote the server
    $output =~ s/(The value is refused: ).*/$1/g;
    $output =~ s/^(.*?)\b(FEHLER|HINWEIS|WARNUNG):/$1$english{$2}:/mg;
    return $output;
}

sub show_difference
{
    my @lines = map { [ split /\n/, $_ ] } @_;

    foreach my $n (0 .. $#{ $lines[0] })
    {
        my ($got, $expected) = map { $_->[$n] // '' } @lines;

        diag("line $n: $got\nEnglish: $expected") if $got ne $expected;
    }
}

my ($english, $german) = map { start($_) } 'C', 'de_DE.UTF-8';

my ($exit_code, $stdout, $stderr) = $german->psql('postgres', 'SELECT 1 / 0');
plan skip_all => 'the server speaks no German' unless $stderr =~ /FEHLER:/;

foreach my $test (@tests)
{
    my ($got, $expected) = map { output($_, $test) } $german, $english;

    ok($got eq $expected, basename($test)) or show_difference($got, $expected);
}

done_testing();
