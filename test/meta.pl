#!/usr/bin/perl
# Checks META.json by the PGXN Meta Spec 1.0.0, as far as this project uses it,
# and against the files that it speaks of.

use strict;
use warnings;

use JSON::PP;

my $text = qr/^\S.*$/;
my $semver = qr/^(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){2}(?:-[A-Za-z][\w-]*)?$/a;
my $name = qr{^[^\s/\\:@]{2,}$};

# what may stand where: a pattern, or a list's or a map's members;
# keys with a star are required, the key "" is for any name
my $spec = {
    'name*' => $name,
    'version*' => $semver,
    'abstract*' => $text,
    'description' => $text,
    'maintainer*' => [$text],
    'license*' => qr/^postgresql$/,
    'provides*' => {
        '' => {
            'file*' => $text,
            'version*' => $semver,
            'abstract' => $text,
            'docfile' => $text,
        },
    },
    'prereqs' => {
        map { $_ => { map { $_ => { '' => $semver } } qw(requires recommends suggests conflicts) } }
          qw(configure build test runtime develop)
    },
    'meta-spec*' => { 'version*' => qr/^1\.0\.\d+$/, 'url' => $text },
    'tags' => [$text],
    'release_status' => qr/^(?:stable|testing|unstable)$/,
    'resources' => {
        'homepage' => $text,
        'bugtracker' => { 'web' => $text, 'mailto' => $text },
        'repository' => { 'url' => $text, 'web' => $text, 'type' => $text },
    },
};
my @faults;

sub slurp
{
    my ($file) = @_;

    open(my $in, '<:raw', $file) or die "$file: $!\n";
    local $/;
    return scalar <$in>;
}

sub check
{
    my ($path, $value, $spec) = @_;

    if (ref $spec eq 'Regexp')
    {
        push @faults, "$path: not valid"
          unless defined $value && !ref $value && $value =~ $spec;
    }
    elsif (ref $spec ne ref $value || !(ref $value eq 'HASH' ? %$value : @$value))
    {
        push @faults, "$path: not a filled " . (ref $spec eq 'HASH' ? 'map' : 'list');
    }
    elsif (ref $spec eq 'ARRAY')
    {
        check("$path\[$_]", $value->[$_], $spec->[0]) for 0 .. $#$value;
    }
    else
    {
        for my $key (sort keys %$value)
        {
            my ($member) = grep { defined } @$spec{ $key, "$key*", '' };

            if ($member)
            {
                check("$path/$key", $value->{$key}, $member);
            }
            elsif ($key !~ /^x_/i)
            {
                push @faults, "$path/$key: not in the spec";
            }
        }
        for my $key (map { /(.+)\*$/ } sort keys %$spec)
        {
            push @faults, "$path/$key: missing" unless exists $value->{$key};
        }
    }
}

my $meta = decode_json(slurp('META.json'));

check('', $meta, $spec);
for my $extension (sort keys %{ $meta->{provides} })
{
    my $provided = $meta->{provides}{$extension};
    my ($version) = slurp("$extension.control") =~ /^default_version = '(.*)'$/m;

    push @faults, "$extension: version $provided->{version} is not the distribution's"
      if $provided->{version} ne $meta->{version};
    push @faults, "$extension: default_version $version is not of $meta->{version}"
      if index("$meta->{version}.", "$version.") != 0;
    push @faults, "$extension: no file $_"
      for grep { !-f } @$provided{ grep { $provided->{$_} } qw(file docfile) };
}

print "META.json: $_\n" for @faults;
exit(@faults > 0);
