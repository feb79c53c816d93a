# pg_upgrade takes a filled inbox and the extension to a newer server. The older
# one is the newest of those that are installed beside it, with the headers that
# the extension is built with.

use strict;
use warnings;

use File::Basename;
use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use ExtensionCatalog;
use FilledInbox;
use SeqinboxTest;

# Debian's servers are in directories like /usr/lib/postgresql/15.
sub major
{
    my ($bindir) = @_;

    return `$bindir/pg_config --version` =~ /(\d+)/ ? $1 : 0;
}

sub has_headers
{
    my ($bindir) = @_;
    chomp(my $directory = `$bindir/pg_config --includedir-server`);

    return -e "$directory/postgres.h" && -x "$bindir/postgres";
}

chomp(my $new_bindir = `pg_config --bindir`);
my ($old_bindir) =
  sort { major($b) <=> major($a) }
  grep { major($_) < major($new_bindir) && has_headers($_) }
  map { dirname($_) } glob(dirname(dirname($new_bindir)) . "/*/bin/pg_config");

plan skip_all => 'there is no older server than ' . major($new_bindir) . ' with its headers'
  unless defined $old_bindir;

my $source = "$FindBin::RealBin/../..";
my $directory = PostgreSQL::Test::Utils::tempdir;
my ($copy, $old_destdir) = ("$directory/source", "$directory/install");
my @make = ('make', '-s', '-C', $copy, "PG_CONFIG=$old_bindir/pg_config", 'with_llvm=no');

mkdir $copy or die "$copy: $!";
system_or_bail('cp', '-R', (map { "$source/$_" } qw(Makefile Makefile.dev META.json seqinbox.control src)),
    glob("$source/seqinbox--*.sql"), $copy);
system_or_bail(@make, 'clean');
command_ok([ @make, 'install', "DESTDIR=$old_destdir" ], 'the extension is built for version ' . major($old_bindir));

my $old = PostgreSQL::Test::Cluster->new('old', install_path => dirname($old_bindir));
my $new = PostgreSQL::Test::Cluster->new('new');

# both with the same checksums, which are on by default from version 18 on
my $checksums = major($old_bindir) < 18 && major($new_bindir) >= 18;

$old->init;
$old->append_conf('postgresql.conf', server_conf($old_destdir, "$old_bindir/pg_config"));
$new->init($checksums ? (extra => ['--no-data-checksums']) : ());
$new->append_conf('postgresql.conf', server_conf());

$old->start;
like($old->safe_psql('postgres', 'SHOW server_version'), qr/^@{[major($old_bindir)]}\b/, 'the old server is the old version');
$old->safe_psql('postgres', 'CREATE EXTENSION seqinbox');
my $content = fill_inbox($old, 'postgres');
$old->stop;

# before version 15, its outputs go into the working directory
chdir $directory or die "$directory: $!";
command_ok(
    [
        'pg_upgrade', '-d' => $old->data_dir, '-D' => $new->data_dir,
        '-b' => $old_bindir, '-B' => $new_bindir,
        '-s' => $new->host, '-p' => $old->port, '-P' => $new->port ],
    'pg_upgrade');

$new->start;
check_inbox($new, 'postgres', $content, 'upgraded');

$new->safe_psql('postgres', 'CREATE DATABASE fresh');
$new->safe_psql('fresh', 'CREATE EXTENSION seqinbox');
is(extension_catalog($new, 'postgres'), extension_catalog($new, 'fresh'),
    'the extension has what a fresh one has');

$new->stop;
done_testing();
