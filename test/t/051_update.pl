# ALTER EXTENSION UPDATE, from each version to the newest one: afterwards the
# extension is as if freshly installed, an inbox goes on, and so do sessions
# that have plans of all functions.
#
# Beside the versions that were released there is one made here, 0.9, which
# differs from its successor in all that an update may have to change. Each of
# its differences is also tried alone, to see that the comparison notices it.

use strict;
use warnings;

use File::Copy;
use File::Path;
use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;

use ExtensionCatalog;
use FilledInbox;
use SeqinboxSql;
use SeqinboxTest;

my $made = '0.9';

# The newest version that can be installed by one script; updates lead from it
# to others.
my @scripts =
  sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] }
  map { m{/seqinbox--(\d+)\.(\d+)\.sql$} ? [ $1, $2, $_ ] : () } glob("$FindBin::RealBin/../../seqinbox--*.sql");
my $base = "$scripts[-1][0].$scripts[-1][1]";
my $script = slurp_file($scripts[-1][2]);

# Statements of the script, which create a function or a procedure and comment
# on it.
sub create
{
    my ($name) = @_;

    return $script =~ /^(CREATE (?:FUNCTION|PROCEDURE) $name\(.*?;\n)/ms ? $1 : die "no function $name";
}

sub comment
{
    my ($name) = @_;

    return $script =~ /^(COMMENT ON (?:FUNCTION|PROCEDURE) $name\(.*?;\n)/ms ? $1 : die "no comment on $name";
}

sub changed
{
    my ($text, $from, $to) = @_;

    die "no $from in $text" if index($text, $from) < 0;
    return $text =~ s/\Q$from\E/$to/r;
}

# What is different in 0.9: the name, how its script differs, how to undo it.
my @differences = (
    [
        'another comment',
        q{COMMENT ON FUNCTION seqinbox_version() IS 'another';},
        comment('seqinbox_version') ],
    [
        'another volatility',
        'ALTER FUNCTION seqinbox_lookup(text, text) STABLE;',
        'ALTER FUNCTION seqinbox_lookup(text, text) VOLATILE;' ],
    [
        'another estimate of rows',
        'ALTER FUNCTION seqinbox_next(bigint) ROWS 1000;',
        'ALTER FUNCTION seqinbox_next(bigint) ROWS 1;' ],
    [
        'a strict function',
        'ALTER FUNCTION seqinbox_is_releasable(text, bigint) STRICT;',
        'ALTER FUNCTION seqinbox_is_releasable(text, bigint) CALLED ON NULL INPUT;' ],
    [
        'fewer privileges',
        'REVOKE EXECUTE ON FUNCTION seqinbox_grant(name, text) FROM PUBLIC;',
        # granting it again would leave an entry where a fresh one has none
        'DROP FUNCTION seqinbox_grant(name, text);' . create('seqinbox_grant') . comment('seqinbox_grant') ],
    [
        'another default',
        changed(changed(create('seqinbox_open_instance'), 'DEFAULT NULL', q{DEFAULT '9 days'}),
            'CREATE', 'CREATE OR REPLACE'),
        changed(create('seqinbox_open_instance'), 'CREATE', 'CREATE OR REPLACE') ],
    [
        'another default of a procedure',
        changed(changed(create('seqinbox_housekeeping'), q{DEFAULT '1 day'}, q{DEFAULT '9 days'}),
            'CREATE', 'CREATE OR REPLACE'),
        changed(create('seqinbox_housekeeping'), 'CREATE', 'CREATE OR REPLACE') ],
    [
        'another name of an argument',
        'DROP FUNCTION seqinbox_try_claim(text, text, bigint);'
          . changed(create('seqinbox_try_claim'), 'message_type', 'type') . comment('seqinbox_try_claim'),
        'DROP FUNCTION seqinbox_try_claim(text, text, bigint);'
          . create('seqinbox_try_claim') . comment('seqinbox_try_claim') ],
    [
        'a function less',
        'DROP FUNCTION seqinbox_diagram(text, text);',
        create('seqinbox_diagram') . comment('seqinbox_diagram') ],
    [
        'a function more',
        q{CREATE FUNCTION seqinbox_old_version() RETURNS text
          AS 'MODULE_PATHNAME', 'seqinbox_version' LANGUAGE C;},
        'DROP FUNCTION seqinbox_old_version();' ],
    [
        'a type more',
        q{CREATE TYPE seqinbox_state AS ENUM ('WAITING');},
        'DROP TYPE seqinbox_state;' ]);

# A directory with the extension's files, where these versions are added.
my $installed = $ENV{SEQINBOX_DESTDIR} // '';
my $destdir = PostgreSQL::Test::Utils::tempdir;
chomp(my $sharedir = `pg_config --sharedir`);
chomp(my $libdir = `pg_config --pkglibdir`);

mkpath([ "$destdir$sharedir/extension", "$destdir$libdir" ]);
foreach my $file (
    glob("$installed$sharedir/extension/seqinbox.control"),
    glob("$installed$sharedir/extension/seqinbox--*.sql"),
    glob("$installed$libdir/seqinbox.*"))
{
    copy($file, $destdir . substr($file, length($installed))) or die "cannot copy $file: $!";
}

sub write_script
{
    my ($versions, @statements) = @_;

    append_to_file("$destdir$sharedir/extension/seqinbox--$versions.sql", join("\n", @statements, ''));
    return;
}

write_script($made, $script, map { $_->[1] } @differences);
write_script("$made--$base", map { $_->[2] } @differences);
write_script("unlike$_", $script, $differences[$_][1]) foreach 0 .. $#differences;

my $node = new_node('main', destdir => $destdir);
my ($newest) = slurp_file("$destdir$sharedir/extension/seqinbox.control") =~
  /^default_version *= *'(.*)'/m;

# A new database with the extension in a version.
my $databases = 0;

sub database_with
{
    my ($version) = @_;
    my $database = 'database' . ++$databases;

    $node->safe_psql('postgres', "CREATE DATABASE $database");
    $node->safe_psql($database, "CREATE EXTENSION seqinbox VERSION '$version'");
    return $database;
}

my $fresh_database = database_with($newest);
my $fresh = extension_catalog($node, $fresh_database);

my $same = extension_catalog($node, database_with($base));

foreach my $number (0 .. $#differences)
{
    my $version = "unlike$number";
    my $different = extension_catalog($node, database_with($version));

    isnt($different =~ s/'$version'/'$base'/r, $same, "the comparison notices $differences[$number][0]");
}

# A call of each function, as one text that is the same in each session; $1 is
# for what has to be new in each call.
my $waiting = q{seqinbox_receive('OrderShipped', '%1$s ' || $1, '%1$s ' || $1, 'value') AS r};
my %calls = (
    seqinbox_claim => [ q{concat_ws(' ', seqinbox_claim('Webhook', 'c ' || $1), seqinbox_claim('Webhook', 'c ' || $1))}, 't f' ],
    seqinbox_try_claim => [ q{concat_ws(' ', seqinbox_try_claim('Webhook', 't ' || $1), seqinbox_try_claim('Webhook', 't ' || $1))}, 'CLAIMED DUPLICATE' ],
    seqinbox_open_instance => [ q{seqinbox_open_instance('OrderSequence', 'open ' || $1) = seqinbox_open_instance('OrderSequence', 'open ' || $1)}, 'true' ],
    seqinbox_store => [ q{seqinbox_store('OrderShipped', 'store ' || $1, seqinbox_open_instance('OrderSequence', 'store ' || $1), 'WAITING', 'value') > 0}, 'true' ],
    seqinbox_lookup => [ q{l.state FROM } . sprintf($waiting, 'look') . q{, seqinbox_lookup('OrderShipped', 'look ' || $1 || left(r.outcome, 0)) AS l}, 'WAITING' ],
    seqinbox_fail_and_release => [ q{seqinbox_fail_and_release(r.id, 'error') FROM } . sprintf($waiting, 'fail'), 'true' ],
    seqinbox_record_failure => [ q{seqinbox_record_failure('OrderShipped', 'failure ' || $1, 'failure ' || $1, 'error') > 0}, 'true' ],
    seqinbox_declare => [ q{'done' || seqinbox_declare('{"sequences": [{"name": "Other", "retentionPeriod": "24h", "messages": [{"type": "Other"}]}]}')::text}, 'done' ],
    seqinbox_diagram => [ q{seqinbox_diagram('OrderSequence') ~ 'OrderShipped'}, 'true' ],
    seqinbox_receive => [ q{outcome FROM seqinbox_receive('OrderCreated', 'receive ' || $1, 'receive ' || $1, 'value')}, 'PROCESS' ],
    seqinbox_receive_batch => [ q{string_agg(outcome, ' ' ORDER BY ordinal) FROM seqinbox_receive_batch('{OrderShipped,OrderCreated}', ARRAY['b1 ' || $1, 'b2 ' || $1], ARRAY['batch ' || $1, 'batch ' || $1], '{v,v}')}, 'BUFFERED PROCESS' ],
    seqinbox_next => [ q{n.message_type FROM seqinbox_receive_batch('{OrderShipped,OrderCreated}', ARRAY['n1 ' || $1, 'n2 ' || $1], ARRAY['next ' || $1, 'next ' || $1], '{v,v}') AS b, seqinbox_next(b.sequence_instance_id) AS n WHERE b.ordinal = 1}, 'OrderShipped' ],
    seqinbox_is_releasable => [ q{seqinbox_is_releasable('OrderShipped', seqinbox_open_instance('OrderSequence', 'is ' || $1))}, 'false' ],
    seqinbox_consume => [ q{'done' || seqinbox_consume(r.id)::text FROM } . sprintf($waiting, 'consume'), 'done' ],
    seqinbox_expire => [ q{'done' || seqinbox_expire(r.id)::text FROM } . sprintf($waiting, 'expire'), 'done' ],
    seqinbox_retry => [ q{'done' || seqinbox_retry(seqinbox_record_failure('OrderShipped', 'retry ' || $1, 'retry ' || $1, 'error', 'value'))::text}, 'done' ],
    seqinbox_consume_all => [ q{'done' || seqinbox_consume_all(r.sequence_instance_id)::text FROM } . sprintf($waiting, 'consume all'), 'done' ],
    seqinbox_close => [ q{'done' || seqinbox_close(r.sequence_instance_id)::text FROM } . sprintf($waiting, 'close'), 'done' ],
    seqinbox_waiting => [ q{(SELECT count(*) > 0 FROM seqinbox_waiting() AS w WHERE w.id = r.id) FROM } . sprintf($waiting, 'wait'), 'true' ],
    seqinbox_dead_letter => [ q{seqinbox_dead_letter(r.id, 'reason') > 0 FROM } . sprintf($waiting, 'dead'), 'true' ],
    seqinbox_requeue => [ q{q.outcome FROM } . sprintf($waiting, 'queue') . q{, seqinbox_requeue(seqinbox_dead_letter(r.id, 'reason')) AS q}, 'BUFFERED' ],
    seqinbox_message_stats => [ 'count(*) > 0 FROM seqinbox_message_stats()', 'true' ],
    seqinbox_instance_stats => [ 'count(*) > 0 FROM seqinbox_instance_stats()', 'true' ],
    seqinbox_grant => [ q{'done' || seqinbox_grant('app', 'consumer')::text}, 'done' ],
    seqinbox_create_inbox => [ q{'done' || seqinbox_create_inbox('sessions')::text}, 'done' ],
    seqinbox_version => [ q{seqinbox_version() ~ '^\d+\.'}, 'true' ],
    # it commits, so only a procedure that is called by itself can keep a plan of it
    seqinbox_housekeeping => [ undef, '' ]);

sub functions_in
{
    my ($database) = @_;

    return split /\n/, $node->safe_psql($database, q{
        SELECT p.proname FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
         WHERE d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
           AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'seqinbox')
         ORDER BY p.proname COLLATE "C"});
}

is_deeply([ sort keys %calls ], [ functions_in($fresh_database) ], 'there is a call of each function');

# The same as functions, for sessions that call them.
sub create_calls
{
    my ($database) = @_;
    my $sql = 'CREATE SCHEMA calls;';

    foreach my $function (sort keys %calls)
    {
        my $call = $calls{$function}[0];

        $sql .= defined $call
          ? "CREATE FUNCTION calls.$function(text) RETURNS text LANGUAGE plpgsql AS
                \$\$BEGIN RETURN (SELECT $call)::text; END\$\$;\n"
          : "CREATE PROCEDURE calls.$function() LANGUAGE plpgsql AS
                \$\$DECLARE a bigint; b bigint; c bigint; d bigint; e bigint;
                BEGIN CALL $function(closed => a, marked => b, removed => c, buried => d, purged => e); END\$\$;\n";
    }
    $node->safe_psql($database, $sql);
    return;
}

# The results of these functions in a session, with "new" as what is new in each
# call. It has a prepared statement for each, or calls the functions from above.
sub call_all
{
    my ($session, $new, @functions) = @_;
    my %results;

    foreach my $function (@functions)
    {
        my $call = $calls{$function}[0];

        if (!defined $call)
        {
            $results{$function} = in_session($session->{psql}, "CALL calls.$function()");
        }
        elsif ($session->{prepares})
        {
            in_session($session->{psql}, "PREPARE $function(text) AS SELECT (SELECT $call)::text")
              unless $session->{prepared}{$function}++;
            $results{$function} = in_session($session->{psql}, "EXECUTE $function('$session->{name} $new')");
        }
        else
        {
            $results{$function} = in_session($session->{psql}, "SELECT calls.$function('$session->{name} $new')");
        }
    }
    return \%results;
}

sub expected
{
    return { map { $_ => $calls{$_}[1] } @_ };
}

$node->safe_psql('postgres', 'CREATE ROLE app');

sub check_update
{
    my ($version) = @_;
    my $database = database_with($version);
    my @had = grep { exists $calls{$_} } functions_in($database);
    my $content = fill_inbox($node, $database);

    isnt(extension_catalog($node, $database), $fresh, "$version is not $newest");

    $node->safe_psql($database, q{
        SELECT seqinbox_create_inbox('sessions');
        SET search_path = sessions;
        SELECT seqinbox_declare('{"sequences": [{"name": "OrderSequence", "retentionPeriod": "24h", "messages": [
            {"type": "OrderCreated"},
            {"type": "OrderShipped", "releaseCondition": {"predecessor": "OrderCreated"}}]}]}')});
    create_calls($database);

    my @sessions = (
        { name => 'prepared statements', prepares => 1 },
        { name => 'functions' },
        { name => 'a transaction', prepares => 1 });
    foreach my $session (@sessions)
    {
        $session->{psql} = open_session($node, dbname => $database);
        in_session($session->{psql}, 'SET search_path = sessions');
        is_deeply(call_all($session, 'before', @had), expected(@had), "$version before the update: $session->{name}");
    }
    # this one is open across the update, but for what can't be called in one, or
    # locks the extension until its end
    my $transaction = $sessions[-1];
    my @in_transaction = grep { defined $calls{$_}[0] && $_ ne 'seqinbox_create_inbox' } @had;

    in_session($transaction->{psql}, 'BEGIN');
    is_deeply(call_all($transaction, 'meanwhile', @in_transaction), expected(@in_transaction),
        "$version in a transaction");

    $node->safe_psql($database, 'ALTER EXTENSION seqinbox UPDATE');

    is(extension_catalog($node, $database), $fresh, "$version is updated to what a fresh $newest is");

    @in_transaction = grep { defined $calls{$_}[0] } sort keys %calls;
    is_deeply(call_all($transaction, 'afterwards', @in_transaction), expected(@in_transaction),
        "$version in the same transaction after the update");
    is(in_session($transaction->{psql}, 'COMMIT'), '', 'which commits');
    is( $node->safe_psql($database, q{
            SET search_path = sessions;
            SELECT seqinbox_claim('Webhook', 'c a transaction ' || n) FROM unnest('{meanwhile,afterwards}'::text[]) AS n}),
        "f\nf", 'its claims are there');

    foreach my $session (@sessions)
    {
        is_deeply(call_all($session, 'after', sort keys %calls), expected(keys %calls),
            "$version after the update: $session->{name}");
        $session->{psql}->quit;
    }
    is($node->safe_psql($database, q{SELECT seqinbox_create_inbox('Order inbox')}), '',
        "the inbox of $version is upgraded");
    check_inbox($node, $database, $content, "inbox of $version");
    return;
}

# All versions, the released ones and 0.9, lead to the newest one.
my @updates = split /\n/, $node->safe_psql('postgres', qq{
    SELECT source || ' ' || coalesce(path, 'no path')
      FROM pg_extension_update_paths('seqinbox')
     WHERE target = '$newest' AND source !~ '^unlike'
     ORDER BY 1});

isnt(@updates, 0, 'there are versions to update from');
foreach my $update (@updates)
{
    my ($version, $path) = split / /, $update, 2;

    isnt($path, 'no path', "$version can be updated to $newest");
    check_update($version);
}

$node->stop;
done_testing();
