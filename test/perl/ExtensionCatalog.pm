# ExtensionCatalog: all that the extension owns in a database, as text that can
# be compared.

package ExtensionCatalog;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Utils;

our @EXPORT = qw(extension_catalog);

# pg_dump knows every kind of object, each with its definition, owner, comment
# and privileges. For pg_upgrade it dumps the members of extensions, too: those
# that pg_depend names, and that all of them are there is checked here. (From
# version 18 on it names array types too, which go with their elements' types.)
sub extension_catalog
{
    my ($node, $database) = @_;
    my ($dump, $errors) = run_command([
        'pg_dump', '--binary-upgrade', '--schema-only',
        '--exclude-schema' => '*', $node->connstr($database) ]);
    my $members = $node->safe_psql($database, q{
        SELECT count(*) FROM pg_depend
         WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
           AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'seqinbox')
           AND NOT (classid = 'pg_type'::regclass
                    AND objid IN (SELECT typarray FROM pg_type))});
    my $dumped = () = $dump =~ /^ALTER EXTENSION seqinbox ADD /mg;

    die "pg_dump dumped $dumped members of $members: $errors"
      if $dumped == 0 || $dumped != $members;
    # without what is new in each dump, object IDs above all
    return join("\n", grep { !/^(?:|--.*|\\\w*restrict .*|.*binary_upgrade_set_next_.*)$/ } split(/\n/, $dump)) . "\n";
}

1;
