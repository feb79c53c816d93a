# SeqinboxSql: run SQL where the tests look at the error or at the messages.

package SeqinboxSql;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(sql_error sql_messages open_session in_session);

my @verbose = ('-v', 'VERBOSITY=verbose');

# What psql says about a statement that fails ("ERROR:  42501: permission
# denied ..." and the lines below it), or "no error".
sub sql_error
{
    my ($node, $sql, %params) = @_;
    my ($exit_code, $stdout, $stderr) = $node->psql($params{dbname} // 'postgres',
        $sql, extra_params => \@verbose);

    return $exit_code == 0 ? 'no error' : $stderr;
}

# The notices and warnings of SQL that must succeed.
sub sql_messages
{
    my ($node, $sql, %params) = @_;
    my ($exit_code, $stdout, $stderr) =
      $node->psql($params{dbname} // 'postgres', $sql);

    die "SQL failed: $stderr" if $exit_code != 0;
    return $stderr;
}

# A session that stays open, also after an error.
sub open_session
{
    my ($node, %params) = @_;

    return $node->background_psql($params{dbname} // 'postgres',
        on_error_stop => 0, extra_params => \@verbose);
}

# The result of a statement in an open session; its error, if it has one.
sub in_session
{
    my ($session, $sql) = @_;

    $session->{stderr} = '';
    my $result = $session->query($sql);
    # the last versions 13 leave their own mark in an empty result
    $result =~ s/\n?background_psql: QUERY_SEPARATOR\n?\z//;
    my $error = $session->{stderr};
    $session->{stderr} = '';

    return $error =~ /ERROR: / ? $error : $result;
}

1;
