# Prints the results of a case as tables, or with --json those of all cases as
# JSON:
#
#   perl bench/report.pl RESULTS GOALS CASE
#   perl bench/report.pl --json RESULTS GOALS
#
# A ratio is the median of the ratios of the rounds: what was measured one
# after the other is compared.

use strict;
use warnings;

use JSON::PP;

sub read_table
{
    my ($file, @columns) = @_;
    my @rows;

    open my $in, '<', $file or die "$file: $!\n";
    while (my $line = <$in>)
    {
        chomp $line;
        my %row;
        @row{@columns} = split /\t/, $line;
        push @rows, \%row;
    }
    close $in;
    return @rows;
}

sub median
{
    my @values = sort { $a <=> $b } @_;

    return ($values[ $#values / 2 ] + $values[ @values / 2 ]) / 2;
}

# The variants of all cases in the order of the results, each with its
# contenders and their values.
sub collect
{
    my ($results, $goals) = @_;
    my (@variants, %variant, %contender);

    foreach my $row (@$results)
    {
        my $key = "$row->{case}\t$row->{variant}";
        my $variant = $variant{$key} //= do
        {
            my $new = { %$row{qw(case variant unit)}, contenders => [], goals => [] };
            push @variants, $new;
            $new;
        };
        my $contender = $contender{"$key\t$row->{contender}"} //= do
        {
            my $new = { name => $row->{contender}, values => [] };
            push @{ $variant->{contenders} }, $new;
            $new;
        };
        push @{ $contender->{values} }, $row->{value} + 0;
    }
    $_->{median} = median(@{ $_->{values} }) foreach values %contender;

    foreach my $goal (@$goals)
    {
        my $key = "$goal->{case}\t$goal->{variant}";
        my @left = @{ $contender{"$key\t$goal->{left}"}{values} };
        my @right = @{ $contender{"$key\t$goal->{right}"}{values} };
        my $ratio = median(map { $left[$_] / $right[$_] } 0 .. $#left);
        my $limit = $goal->{limit} + 0;
        my $met = $goal->{operator} eq '>=' ? $ratio >= $limit : $ratio <= $limit;

        push @{ $variant{$key}{goals} }, {
            %$goal{qw(left operator right)},
            limit => $limit,
            ratio => $ratio,
            met => $met ? JSON::PP::true : JSON::PP::false,
        };
    }
    return @variants;
}

sub number
{
    my ($value) = @_;

    return sprintf $value < 100 ? '%.2f' : '%.0f', $value;
}

sub print_variant
{
    my ($variant) = @_;

    print "\n$variant->{case}: $variant->{variant}\n\n";
    print "| contender | $variant->{unit} | min | max |\n|---|---|---|---|\n";
    foreach my $contender (@{ $variant->{contenders} })
    {
        my @sorted = sort { $a <=> $b } @{ $contender->{values} };

        print '| ', join(' | ', $contender->{name},
            map { number($_) } $contender->{median}, $sorted[0], $sorted[-1]), " |\n";
    }
    return unless @{ $variant->{goals} };
    print "\n| goal | ratio | |\n|---|---|---|\n";
    printf "| %s %s %s × %s | %.2f | %s |\n", @$_{qw(left operator limit right ratio)},
      $_->{met} ? 'met' : 'not met'
      foreach @{ $variant->{goals} };
    return;
}

my $json = $ARGV[0] eq '--json' && shift;
my ($results_file, $goals_file, $case) = @ARGV;
my @results = read_table($results_file, qw(case variant unit contender round value));
my @goals = read_table($goals_file, qw(case variant left operator limit right));
my @variants = collect(\@results, \@goals);

if ($json)
{
    my %run = (
        %ENV{qw(command server_version processor)},
        processors => $ENV{processors} + 0,
        rounds => $ENV{rounds} + 0,
        seconds => $ENV{seconds} + 0,
        results => \@variants,
    );

    print JSON::PP->new->canonical->pretty->encode(\%run);
}
else
{
    print_variant($_) foreach grep { $_->{case} eq $case } @variants;
}
