# SeqinboxTest: servers for the TAP tests.

package SeqinboxTest;

use strict;
use warnings;

use Exporter 'import';
use File::Basename;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(new_node new_standby need_psycopg server_conf small_disk);

# What every server of the tests needs. The directory into which the extension
# was installed, if not into the server's own, is SEQINBOX_DESTDIR unless given;
# pg_config is the server's, if not the one in PATH.
sub server_conf
{
    my ($destdir, $pg_config) = @_;
    my $conf = "max_prepared_transactions = 10\n";

    if ($destdir //= $ENV{SEQINBOX_DESTDIR})
    {
        my $script = dirname(__FILE__) . '/../extension_conf';
        my @command = ('sh', $script, $destdir, $pg_config // 'pg_config');

        open(my $lines, '-|', @command) or die "cannot run $script: $!";
        $conf .= join('', <$lines>);
        close $lines or die "$script failed";
    }
    return $conf;
}

# Skips the test where Python lacks psycopg 3, as in Debian 11.
sub need_psycopg
{
    plan skip_all => 'there is no psycopg 3'
      if system('python3', '-c', 'import psycopg') != 0;
    return;
}

# The directory of one of the small disks (test/small_disks.sh), emptied; none
# where they could not be mounted.
sub small_disk
{
    my ($number) = @_;
    my $disks = $ENV{SEQINBOX_SMALL_DISKS} // return;

    system_or_bail('find', "$disks/$number", '-mindepth', 1, '-delete');
    return "$disks/$number";
}

# Moves the data of a server that doesn't run to a small disk, if there is one.
sub move_to_disk
{
    my ($node, $number) = @_;
    my $disk = small_disk($number) // return;

    system_or_bail('mv', $node->data_dir, "$disk/data");
    symlink("$disk/data", $node->data_dir) or die "cannot make a link: $!";
    return;
}

# A running server. Options: init => arguments of Cluster's init, conf => more
# lines of configuration, destdir => where the extension was installed, disk =>
# number of the small disk for its data.
sub new_node
{
    my ($name, %options) = @_;
    my $node = PostgreSQL::Test::Cluster->new($name);

    $node->init(@{ $options{init} // [] });
    $node->append_conf('postgresql.conf', server_conf($options{destdir}) . ($options{conf} // ''));
    move_to_disk($node, $options{disk}) if $options{disk};
    $node->start;
    return $node;
}

# A running standby of a server, with the same configuration and options.
sub new_standby
{
    my ($name, $primary, %options) = @_;
    my $node = PostgreSQL::Test::Cluster->new($name);

    $primary->backup($name);
    $node->init_from_backup($primary, $name, has_streaming => 1);
    $node->append_conf('postgresql.conf', $options{conf} // '');
    move_to_disk($node, $options{disk}) if $options{disk};
    $node->start;
    return $node;
}

1;
