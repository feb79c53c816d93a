# A filled inbox survives pg_dump and a restore into a new cluster, plain and
# custom, and goes on working there.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use FilledInbox;
use SeqinboxTest;

my $source = new_node('source');
my $target = new_node('target');

$source->safe_psql('postgres', 'CREATE EXTENSION seqinbox');
my $content = fill_inbox($source, 'postgres');

my $directory = PostgreSQL::Test::Utils::tempdir;
my %restores = (
    plain => [ 'plain', [ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f' ] ],
    custom => [ 'custom', [ 'pg_restore', '--exit-on-error' ] ],
    parallel => [ 'custom', [ 'pg_restore', '--exit-on-error', '-j4' ] ]);

foreach my $format (qw(plain custom))
{
    $source->command_ok(
        [ 'pg_dump', '-F', $format, '-f', "$directory/$format", $source->connstr('postgres') ],
        "pg_dump -F $format");
}

foreach my $name (sort keys %restores)
{
    my ($format, $command) = @{ $restores{$name} };
    my ($program, @arguments) = @$command;

    $target->safe_psql('postgres', "CREATE DATABASE $name");
    $target->command_ok(
        [ $program, '-d', $target->connstr($name), @arguments, "$directory/$format" ],
        "$name restore");
    check_inbox($target, $name, $content, $name);
}

done_testing();
