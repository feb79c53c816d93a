# SeqinboxTest: servers for the TAP tests.

package SeqinboxTest;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;

our @EXPORT = qw(new_node server_conf);

# What every server of the tests needs. SEQINBOX_DESTDIR names the directory
# into which the extension was installed, if not into the server's own.
sub server_conf
{
    my $conf = "max_prepared_transactions = 10\n";

    if (my $destdir = $ENV{SEQINBOX_DESTDIR})
    {
        chomp(my $libdir = `pg_config --pkglibdir`);
        $conf .= "extension_destdir = '$destdir'\n"
          . "dynamic_library_path = '$destdir$libdir:\$libdir'\n";
    }
    return $conf;
}

# A running server. Options: init => arguments of Cluster's init, conf => more
# lines of configuration.
sub new_node
{
    my ($name, %options) = @_;
    my $node = PostgreSQL::Test::Cluster->new($name);

    $node->init(@{ $options{init} // [] });
    $node->append_conf('postgresql.conf', server_conf() . ($options{conf} // ''));
    $node->start;
    return $node;
}

1;
