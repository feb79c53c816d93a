# SeqinboxTest: servers for the TAP tests.

package SeqinboxTest;

use strict;
use warnings;

use Exporter 'import';
use File::Basename;
use PostgreSQL::Test::Cluster;

our @EXPORT = qw(new_node server_conf);

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

# A running server. Options: init => arguments of Cluster's init, conf => more
# lines of configuration, destdir => where the extension was installed.
sub new_node
{
    my ($name, %options) = @_;
    my $node = PostgreSQL::Test::Cluster->new($name);

    $node->init(@{ $options{init} // [] });
    $node->append_conf('postgresql.conf', server_conf($options{destdir}) . ($options{conf} // ''));
    $node->start;
    return $node;
}

1;
