# The documentation tells the truth: each of its SQL examples runs and prints
# what stands below it, links lead somewhere, the reference describes every
# function and setting, and the architecture names every source file.
#
# The ```sql blocks of a file run in order in one session of a database of the
# file's own. A ```text block right below one is the output, without command
# tags, and trailing blanks don't count; where there is none, nothing may fail.
# Blocks marked "sql notest" are not run.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxTest;

my $top = "$FindBin::RealBin/../..";
my $marker = '-- end of example --';

sub without_trailing_blanks
{
    my ($text) = @_;

    $text =~ s/[ \t]+$//mg;
    $text =~ s/\n+\z/\n/;
    return $text;
}

# The examples of a text: SQL, output if there is one, line number.
sub examples
{
    my ($text) = @_;
    my @examples;

    while ($text =~ /^```sql\n(.*?)^```\n(?:\n*```text\n(.*?)^```\n)?/msg)
    {
        my $line = 1 + substr($text, 0, $-[0]) =~ tr/\n//;

        push @examples, { sql => $1, output => $2, line => $line };
    }
    return @examples;
}

# What psql prints for each of the examples, which run in one session.
sub outputs
{
    my ($connstr, @examples) = @_;
    my $script = join('', map { "$_->{sql}\\echo '$marker'\n" } @examples);
    my $output = '';

    IPC::Run::run([ 'psql', '-X', '-q', '-d', $connstr ],
        '<', \$script, '>', \$output, '2>&1');
    return split /^\Q$marker\E\n/m, $output, -1;
}

sub check_examples
{
    my ($node, $file, $text) = @_;
    my @examples = examples($text) or return;
    my $database = lc($file =~ s/\W/_/gr);

    $node->safe_psql('postgres', "CREATE DATABASE $database");
    my @outputs = outputs($node->connstr($database), @examples);

    is(@outputs, @examples + 1, "$file: all examples ran");
    foreach my $example (@examples)
    {
        my $output = shift(@outputs) // 'did not run';
        my $name = "$file line $example->{line}";

        if (defined $example->{output})
        {
            is(without_trailing_blanks($output),
                without_trailing_blanks($example->{output}), $name);
        }
        else
        {
            unlike($output, qr/^(?:ERROR|FATAL|invalid command|did not run)|: error: /m,
                "$name: no error");
        }
    }
    return;
}

# The anchors of a text's headings, as the usual renderers make them.
sub anchors
{
    my ($text) = @_;

    return map { lc(s/[^\w\- ]//gr) =~ tr/ /-/r } $text =~ /^#+ +(.*)$/mg;
}

sub check_links
{
    my ($file, $text) = @_;
    my ($directory) = "/$file" =~ m{^(.*)/};

    foreach my $link ($text =~ /\]\((?!\w+:)([^)]+)\)/g)
    {
        my ($path, $anchor) = split /#/, $link;
        my $target = $path eq '' ? "$top/$file" : "$top$directory/$path";

        ok(-e $target, "$file: there is $link") or next;
        ok((grep { $_ eq $anchor } anchors(slurp_file($target))), "$file: $link is a heading")
          if defined $anchor;
    }
    return;
}

# Sections of the reference: heading to text.
sub sections
{
    my ($text) = @_;

    return $text =~ /^### +(\S+)\n(.*?)(?=^##|\z)/msg;
}

# Functions with the names of their arguments and result columns.
sub check_functions
{
    my ($node, %sections) = @_;
    my %functions = map { split /\|/, $_, 2 } split /\n/, $node->safe_psql('postgres', q{
        SELECT proname, array_to_string(proargnames, ' ')
          FROM pg_proc
          JOIN pg_depend ON classid = 'pg_proc'::regclass AND objid = pg_proc.oid
          JOIN pg_extension e ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid
         WHERE extname = 'seqinbox'});

    foreach my $function (sort keys %functions)
    {
        my $section = $sections{$function} // '';

        ok($section, "$function has a section");
        ok((grep { defined $_->{output} && $_->{sql} =~ /\b$function\(/ } examples($section)),
            "$function has an example with its output");
        like($section, qr/`$_`/, "$function: $_ is explained")
          foreach split / /, $functions{$function};
    }
    is_deeply([ grep { !exists $functions{$_} } grep { /^seqinbox_/ } sort keys %sections ],
        [], 'every section is about a function that exists');
    return;
}

sub check_settings
{
    my ($node, %sections) = @_;
    my @settings = split /\n/, $node->safe_psql('postgres', q{
        LOAD 'seqinbox';
        SELECT name FROM pg_settings WHERE name LIKE 'seqinbox.%' ORDER BY name});

    isnt(@settings, 0, 'there are settings');
    is_deeply([ sort grep { /^seqinbox\./ } keys %sections ],
        \@settings, 'every setting has a section, and no other has');
    return;
}

sub check_source_files
{
    my ($text) = @_;

    foreach my $file (map { s{.*/}{}r } sort glob("$top/src/*.c"))
    {
        like($text, qr/`\Q$file\E`/, "$file is in the layers");
    }
    return;
}

# some settings exist only where the library is preloaded
my $node = new_node('main', conf => "shared_preload_libraries = 'seqinbox'\n");
my @files = map { s{^\Q$top\E/}{}r } "$top/README.md", sort glob("$top/docs/*.md");

foreach my $file (@files)
{
    my $text = slurp_file("$top/$file");

    check_links($file, $text);
    check_examples($node, $file, $text);
}
foreach my $file (qw(README.md docs/reference.md docs/guide.md docs/declarations.md docs/adoption.md
    docs/operations.md))
{
    ok((grep { defined $_->{output} } examples(slurp_file("$top/$file"))),
        "$file has examples with output");
}

$node->safe_psql('postgres', 'CREATE EXTENSION seqinbox');
my %sections = sections(slurp_file("$top/docs/reference.md"));
check_functions($node, %sections);
check_settings($node, %sections);
check_source_files(slurp_file("$top/docs/architecture.md"));

done_testing();
