#!/usr/bin/perl
# Prints a C file in the layout that pgindent gives.  pgindent is in no Debian
# package, so clang-format does most of it, by .clang-format.  Added here is what
# clang-format can't do: pgindent's columns for declared names and for comments
# at the end of a line, and leaving macros and initializers to their author.

use strict;
use warnings;

use constant { TAB => 4, NAMES => 12, COMMENTS => 32 };

my $type = qr/
    (?: (?: static|extern|PGDLLEXPORT|const|volatile|struct|enum|union
          | unsigned|signed ) \s )*
    (?! (?: return|goto|else|case|default|typedef ) \b )
    \w+ (?: \s (?: int|long|char|const ) )*/x;
my $declarator = qr/(?:\w+|\(\*+\w+\)) (?: [;,\[(] | \s= | \s?:\s?\d | \s\( )/x;
my $string  = qr/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/;
my $comment = qr{/\*(?:(?!\*/).)*(?:\*/)?};

print align(clang_format($_)) for @ARGV;

sub clang_format
{
    my ($file) = @_;
    my @lines = map { "--lines=$_" } code_lines($file);

    open(my $in, '-|', 'clang-format', '--style=file', @lines, $file)
      or die "clang-format: $!\n";
    my @formatted = <$in>;
    close($in) or die "clang-format failed on $file\n";
    return @formatted;
}

# The ranges of lines that are neither macros nor initializers in braces.
sub code_lines
{
    my ($file) = @_;
    my ($start, $macro, $initializer, @ranges);

    open(my $in, '<', $file) or die "$file: $!\n";
    my @lines = (<$in>, '');
    for my $i (0 .. $#lines)
    {
        $initializer ||= "$lines[$i]$lines[$i + 1]" =~ /^.*=\s*\{$|^.*=\n\s*\{$/m
          if $i < $#lines;
        $macro ||= $lines[$i] =~ /^\s*#/;
        if ($macro || $initializer || $i == $#lines)
        {
            push @ranges, "$start:$i" if defined $start;
            undef $start;
        }
        else
        {
            $start //= $i + 1;
        }
        $macro &&= $lines[$i] =~ /\\$/;
        $initializer &&= $lines[$i] !~ /;/;
    }
    return @ranges;
}

sub align
{
    my $result = '';
    my $depth = 0;      # of parentheses
    my $shift = 0;      # what a declaration's arguments move with its name
    my $names;          # the column of the further names of a declaration
    my ($in_comment, $macro);

    for my $line (@_)
    {
        chomp $line;
        if ($in_comment)
        {
            $in_comment = $line !~ m{\*/};
        }
        elsif ($macro || $line =~ /^\s*#/)
        {
            $macro = $line =~ /\\$/;
            $line = align_comment($line);
        }
        else
        {
            if ($depth > 0)
            {
                $line =~ s/^(\s+)/blanks(0, width($1) + $shift)/e if $shift;
            }
            elsif (defined $names)
            {
                $line =~ s/^\s+(?=(\**))/blanks(0, $names - length $1)/e;
            }
            elsif ($line =~ /^(\t*$type)\s(\**(?:(?:volatile|const)\s)?)($declarator.*)/)
            {
                my ($before, $stars, $name) = ($1, $2, $3);
                my $column = width($before =~ /^(\t*)/) + NAMES - ($stars =~ tr/*//);

                $names = $column + ($stars =~ tr/*//) if $name =~ /,$/ && $name !~ /\(/;
                $line = $before . blanks(width($before), $column);
                $shift = width($line) - width($before) - 1;
                $line .= "$stars$name";
            }
            else
            {
                $shift = 0;
            }

            (my $code = $line) =~ s/$string|$comment//g;
            $depth += ($code =~ tr/(//) - ($code =~ tr/)//);
            undef $names if $code =~ /;/;
            $line = align_comment($line);
            $in_comment = $line =~ m{$comment$} && $line !~ m{\*/$};
        }
        $result .= "$line\n";
    }
    return $result;
}

sub align_comment
{
    my ($line) = @_;
    my ($code, $comment) =
      $line =~ m{^((?:$string|(?!/\*)[^"'])*[^\s])\s+($comment)$}
      or return $line;
    my $end = width($code);
    my $column = $end < COMMENTS ? COMMENTS : $end + TAB - $end % TAB;

    return $code . blanks($end, $column) . $comment;
}

sub width
{
    my $column = 0;

    $column += $_ eq "\t" ? TAB - $column % TAB : 1 for split //, $_[0];
    return $column;
}

# What leads from one column to another, at least a space.  As from pgindent,
# a tab is no wider than it has to be seen: one that fills a single column
# is written only before another.
sub blanks
{
    my ($from, $to) = @_;
    my $tabs = int($to / TAB) - int($from / TAB);

    return ' ' x ($to > $from ? $to - $from : $from > 0)
      if $tabs < 1 || $to - $from == 1;
    return ' ' x ($to - $from) if $tabs == 1 && $from % TAB == TAB - 1;
    return "\t" x $tabs . ' ' x ($to % TAB);
}
