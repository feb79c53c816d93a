#!/usr/bin/perl
# Prints a C file in the layout that pgindent gives.  pgindent is in no Debian
# package, so clang-format does most of it, by .clang-format.  Added here is what
# clang-format can't do: to leave the breaks within statements, and all of macros
# and initializers, to their author, and to line up continued lines, declared
# names and comments at the end of a line as pgindent does.

use strict;
use warnings;

use IPC::Open2;

use constant { TAB => 4, NAMES => 12, COMMENTS => 32 };

my $string = qr/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/;
my $type = qr/
    (?: (?: static|extern|PGDLLEXPORT|const|volatile|struct|enum|union
          | unsigned|signed ) \s )*
    (?! (?: return|goto|else|case|default|typedef ) \b )
    \w+ (?: \s (?: int|long|char|const ) )*/x;
my $name = qr/(?:\w+|\(\*+\w+\)) (?: [;,\[(] | \s= | \s?:\s?\d | \s\( )/x;
# how a line ends that goes on after it
my $unfinished = qr{(?:[-+/%&|=?,<>]|\s:|\*\))$};

# What masked() writes over text that isn't code to be laid out.
use constant { COMMENT => "\x00", FIXED => "\x01" };

my ($file) = @ARGV;
print map { "$_\n" } align(unmark(clang_format(mark(slurp($file)))));

sub slurp
{
    my ($file) = @_;

    open(my $in, '<', $file) or die "$file: $!\n";
    chomp(my @lines = <$in>);
    return @lines;
}

# The lines with other characters for strings, comments, macros and initializers.
sub masked
{
    my $text = join("\n", @_);
    my $over = sub {
        my ($part, $character) = @_;
        $part =~ s/[^\n\t]/$character/g;
        return $part;
    };

    $text =~ s{($string)|(/\*.*?\*/)}{$over->($&, defined $1 ? 'x' : COMMENT)}gse;
    $text =~ s{^[ \t]*\#(?:.*\\\n)*.*}{$over->($&, FIXED)}gme;
    $text =~ s{^.*=\s*\{\n[^;]*;}{$over->($&, FIXED)}gme;
    return split(/\n/, $text, -1);
}

# True for each line whose statement goes on after it.
sub continued
{
    my @lines = @_;
    my @masked = masked(@lines);
    my $depth = 0;
    my @continued;

    for my $i (0 .. $#lines)
    {
        (my $code = $masked[$i]) =~ s/\s*\x00[\x00\t]*$//;
        my $in_comment = $masked[$i] =~ /\x00$/ && $lines[$i] !~ m{\*/$};

        $depth += ($code =~ tr/(//) - ($code =~ tr/)//);
        $continued[$i] = $code =~ /\S/ && $code !~ /\x01/ && !$in_comment
          && ($depth > 0 || $code =~ $unfinished);
    }
    return @continued;
}

# An empty comment keeps clang-format from joining a line with the next.
sub mark
{
    my @lines = @_;
    my @continued = continued(@lines);

    return map { $continued[$_] ? "$lines[$_] //" : $lines[$_] } 0 .. $#lines;
}

sub clang_format
{
    my @lines = @_;
    my @masked = (masked(@lines), FIXED);
    my ($start, @ranges);

    for my $i (0 .. $#masked)
    {
        if ($masked[$i] !~ /\x01/)
        {
            $start //= $i + 1;
        }
        elsif (defined $start)
        {
            push @ranges, "--lines=$start:$i";
            undef $start;
        }
    }

    my $pid = open2(my $out, my $in, 'clang-format', "--assume-filename=$file", @ranges);
    print $in map { "$_\n" } @lines;
    close($in);
    chomp(my @formatted = <$out>);
    waitpid($pid, 0);
    die "clang-format failed\n" if $?;
    return @formatted;
}

# Takes out the marks, and the breaks that clang-format added: those without.
sub unmark
{
    my @lines = @_;
    my @marked = map { scalar s{\s*//$}{} } @lines;
    my @continued = continued(@lines);
    my @result = (shift @lines);

    for my $i (0 .. $#lines)
    {
        if ($continued[$i] && !$marked[$i])
        {
            my $space = $result[-1] =~ /\($/ || $lines[$i] eq '' ? '' : ' ';
            $result[-1] .= $space . $lines[$i] =~ s/^\s+//r;
        }
        else
        {
            push @result, $lines[$i];
        }
    }
    return @result;
}

sub align
{
    my @lines = @_;
    my @masked = masked(@lines);
    my @parentheses;    # the columns after those that are open
    my $names;          # the column of the names that a statement declares
    my $first;          # the column of its first line
    my $next;           # where a statement goes on outside of parentheses

    for my $i (0 .. $#lines)
    {
        next if $masked[$i] !~ /[^\s\x00\x01]/ || $masked[$i] =~ /\x01/;

        my ($indent, $stars) = $masked[$i] =~ /^(\s*)(\**)/;
        my ($before, $after) = ($indent, $indent);

        if (@parentheses)
        {
            $after = blanks(0, $parentheses[-1]);
        }
        elsif (defined $next)
        {
            $after = blanks(0, $next - length $stars);
        }
        elsif ($masked[$i] =~ /^(\s*$type)\s(\**(?:(?:volatile|const)\s)?)$name/)
        {
            my $column = width($indent) + NAMES;

            $before = "$1 ";
            $after = $1 . blanks(width($1), $column - ($2 =~ tr/*//));
            $names = $column;
        }
        substr($_, 0, length $before) = $after for $lines[$i], $masked[$i];

        my ($code, $space, $comment) = $masked[$i] =~ /^(.*?[^\s\x00])(\s*)(\x00[\x00\t]*)?$/;
        if (defined $comment)
        {
            my $end = width($code);
            my $column = $end < COMMENTS ? COMMENTS : $end + TAB - $end % TAB;

            substr($lines[$i], length $code, length $space) = blanks($end, $column);
        }

        for my $length (1 .. length $code)
        {
            my $character = substr($code, $length - 1, 1);

            push @parentheses, width(substr($code, 0, $length)) if $character eq '(';
            pop @parentheses if $character eq ')';
        }
        if (@parentheses || $code =~ /$unfinished(?<!,)/ || defined $names && $code !~ /[;{}]$/)
        {
            $first //= width($indent);
            $next = !defined $names || $code =~ /=/ && $code !~ /,$/ ? $first + TAB : $names;
        }
        else
        {
            undef $_ for $names, $first, $next;
        }
    }
    return @lines;
}

sub width
{
    my ($text) = @_;
    my $column = 0;

    $column += $_ eq "\t" ? TAB - $column % TAB : 1 for split //, $text;
    return $column;
}

# What leads from one column to another: a space, or tabs and then spaces.  Like
# pgindent, a tab only where it isn't the only blank.
sub blanks
{
    my ($from, $to) = @_;
    my $tabs = int($to / TAB) - int($from / TAB);

    return ' ' if $from > 0 && $to <= $from + 1;
    return ' ' x ($to - $from) if $tabs < 1 || $tabs == 1 && $from % TAB == TAB - 1;
    return "\t" x $tabs . ' ' x ($to % TAB);
}
