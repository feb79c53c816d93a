# The background worker: finds databases and inboxes, cleans them at intervals,
# survives what is broken, and stops when it is told to.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxSql;
use SeqinboxTest;

my $launcher = 'seqinbox housekeeping launcher';
my $worker = 'seqinbox housekeeping worker';

# The first database of the list does not exist.
my $node = new_node('main', init => [ allows_streaming => 1 ], conf => q{
    shared_preload_libraries = 'seqinbox'
    seqinbox.housekeeping_databases = 'absent, one, "Two"'
    seqinbox.housekeeping_interval = '1s'
    max_worker_processes = 8
});

sub set
{
    my ($setting, $value) = @_;

    $node->safe_psql('postgres', "ALTER SYSTEM SET $setting = $value");
    $node->reload;
    return;
}

sub make_inbox
{
    my ($database, $schema) = @_;

    $node->safe_psql($database, qq{
        SET client_min_messages = warning;
        CREATE EXTENSION IF NOT EXISTS seqinbox;
        SELECT seqinbox_create_inbox('$schema')});
    return;
}

# Makes instances whose time has come.
sub expire
{
    my ($database, $schema, $count) = @_;

    $node->safe_psql($database, qq{
        INSERT INTO $schema.sequence_instance (name, context_id, state, created_at, retain_until)
        SELECT 'Orders', gen_random_uuid(), 'CLOSED', '2000-01-01', '2000-01-02'
          FROM generate_series(1, } . ($count // 1) . ')');
    return;
}

sub remaining
{
    my ($database, $schema) = @_;

    return $node->safe_psql($database, "SELECT count(*) FROM $schema.sequence_instance WHERE name = 'Orders'");
}

sub is_cleaned
{
    my ($database, $schema, $name) = @_;

    ok($node->poll_query_until($database,
            "SELECT NOT EXISTS (SELECT FROM $schema.sequence_instance WHERE name = 'Orders')"), $name);
    return;
}

sub pid_of
{
    my ($backend_type) = @_;

    return $node->safe_psql('postgres',
        "SELECT pid FROM pg_stat_activity WHERE backend_type = '$backend_type'");
}

# A session that keeps the worker waiting in the middle of its work.
sub keep_waiting
{
    my ($database, $schema) = @_;
    my $session = open_session($node, dbname => $database);

    in_session($session, "BEGIN; LOCK TABLE $schema.sequence_instance");
    $node->poll_query_until('postgres', qq{
        SELECT count(*) = 1 FROM pg_stat_activity
         WHERE backend_type = '$worker' AND wait_event_type = 'Lock'})
      or die 'the worker does not come';
    return $session;
}

# several databases, made while the launcher is running, and several inboxes
$node->safe_psql('postgres', $_) foreach 'CREATE DATABASE one', 'CREATE DATABASE "Two"', 'CREATE DATABASE other';
make_inbox(@$_) foreach [ 'one', 'a' ], [ 'one', 'b' ], [ 'Two', 'a' ], [ 'other', 'a' ];
expire(@$_) foreach [ 'other', 'a' ], [ 'one', 'a' ], [ 'one', 'b' ], [ 'Two', 'a' ];
is_cleaned('one', 'a', 'the first inbox of a database');
ok($node->wait_for_log(
        qr/LOG:  housekeeping of inbox "a": 0 instances closed, 0 marked, 1 removed; 0 dead letters made, 0 purged/),
    'what was done is logged');
is_cleaned('one', 'b', 'the second inbox of a database');
is_cleaned('Two', 'a', 'another database, whose name needs quotes');
like(slurp_file($node->logfile), qr/FATAL:  database "absent" does not exist/,
    'a database that does not exist is logged');

# an inbox that is made later
make_inbox('one', 'later');
expire('one', 'later');
is_cleaned('one', 'later', 'a new inbox is found without a restart');
$node->safe_psql('one', q{DELETE FROM later.sequence_instance WHERE name = 'seqinbox.idempotence'});
ok($node->poll_query_until('one', q{
        SELECT count(*) = 48 FROM later.sequence_instance WHERE name = 'seqinbox.idempotence'}),
    'windows for claims without sequencing are made ahead');

# all of section 7 that needs no argument
$node->safe_psql('one', q{
    SET search_path = a;
    SELECT seqinbox_declare('{"sequences": [{"name": "Orders", "retentionPeriod": "1 day", "messages": [
        {"type": "Created"}, {"type": "Shipped", "releaseCondition": {"predecessor": "Created"}}]}]}');
    SELECT seqinbox_receive('Shipped', 's-1', 'to be marked', 'v');
    SELECT seqinbox_receive('Shipped', 's-2', 'to be removed', 'v');
    UPDATE sequence_instance SET created_at = now() - interval '3 days', retain_until = now() - interval '2 days'
     WHERE context_id = 'to be removed';
    UPDATE sequence_instance SET created_at = now() - interval '1 day', retain_until = now()
     WHERE context_id = 'to be marked';
    UPDATE sequential_inbox_idempotence SET created_at = now() - interval '1 day'});
ok($node->poll_query_until('one', q{SELECT count(*) = 1 FROM a.dead_letter}),
    'a message that was waiting becomes a dead letter');
is($node->safe_psql('one', q{SELECT idempotence_id FROM a.dead_letter}), 's-2',
    'that of the instance whose time has come');
ok($node->poll_query_until('one', q{
        SELECT remove_after = retain_until + interval '1 day' FROM a.sequence_instance
         WHERE context_id = 'to be marked'}),
    'the other instance is kept for another day');
$node->safe_psql('one', q{
    DELETE FROM a.buffered_message; DELETE FROM a.sequenced_message;
    DELETE FROM a.sequence_instance WHERE name = 'Orders'});

# what is broken keeps nobody else from being cleaned: an inbox made before the
# others, and one that is none
my $log = -s $node->logfile;
make_inbox('one', 'c');
$node->safe_psql('one', q{
    DROP TABLE a.sequenced_message CASCADE;
    CREATE SCHEMA no_inbox;
    CREATE TABLE no_inbox.sequential_inbox_idempotence (nothing int)});
make_inbox('one', 'd');
expire('one', $_) foreach qw(a c d);
is_cleaned('one', 'c', 'an inbox after one without a table');
is_cleaned('one', 'd', 'an inbox after a schema that is no inbox');
my $logged = slurp_file($node->logfile, $log);
like($logged, qr/ERROR:  relation "a.sequenced_message" does not exist/, 'the missing table is logged');
like($logged, qr/ERROR:  relation "no_inbox.sequence_instance" does not exist/, 'and what is no inbox');
is(remaining('one', 'a'), 1, 'nothing of the broken inbox is removed');
$node->safe_psql('one', 'DROP SCHEMA a, no_inbox CASCADE');

# visible
my $session = keep_waiting('one', 'b');
is( $node->safe_psql('postgres', qq{
        SELECT backend_type, datname, state, query <> '' FROM pg_stat_activity
         WHERE backend_type LIKE 'seqinbox%' ORDER BY 1}),
    "$launcher|||f\n$worker|one|active|t", 'launcher and worker are in pg_stat_activity');

# a worker that an administrator ends: the launcher goes on with the next
# database
expire('Two', 'a');
is($node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . pid_of($worker) . ')'), 't', 'a worker is ended');
is_cleaned('Two', 'a', 'the next database has its turn');
$session->quit;

# one that was waiting for a lock goes on
$session = keep_waiting('one', 'b');
expire('one', 'c');
in_session($session, 'COMMIT');
$session->quit;
is_cleaned('one', 'c', 'a worker goes on after it waited for a lock');

# neither a lock nor a trigger of one inbox keeps the next from its turn for
# long, here for as long as the database's settings say
$node->safe_psql('one', q{
    CREATE FUNCTION b.hang() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(1000); RETURN OLD; END';
    CREATE TRIGGER hang BEFORE DELETE ON b.sequence_instance FOR EACH ROW EXECUTE FUNCTION b.hang();
    ALTER DATABASE one SET lock_timeout = '100ms'});
$session = keep_waiting('one', 'b');
$log = -s $node->logfile;
expire('one', 'c');
is_cleaned('one', 'c', 'the next inbox has its turn while the first one is locked');
in_session($session, 'COMMIT');
$session->quit;
like(slurp_file($node->logfile, $log), qr/ERROR:  canceling statement due to lock timeout/,
    'which is logged');
$node->safe_psql('one', q{
    ALTER DATABASE one RESET lock_timeout;
    ALTER DATABASE one SET statement_timeout = '500ms'});
$log = -s $node->logfile;
expire('one', $_) foreach qw(b c);
is_cleaned('one', 'c', 'and while a trigger of the first one does not end');
like(slurp_file($node->logfile, $log), qr/ERROR:  canceling statement due to statement timeout/,
    'which is logged');
$node->safe_psql('one', q{
    ALTER DATABASE one RESET statement_timeout;
    DROP FUNCTION b.hang CASCADE});
is_cleaned('one', 'b', 'it is cleaned when nothing hangs any more');

# the interval is changed by a reload, here while a worker is at work, which is
# the last one then
$session = keep_waiting('one', 'b');
my $last = pid_of($worker);
set('seqinbox.housekeeping_interval', q{'1d'});
in_session($session, 'COMMIT');
$session->quit;
ok($node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $last)"),
    'the worker ends');
expire('one', 'c');
sleep 3;
is(remaining('one', 'c'), 1, 'a longer interval counts without a restart');
set('seqinbox.housekeeping_interval', q{'1s'});
is_cleaned('one', 'c', 'and so does a shorter one');

# so is the list of databases
is(remaining('other', 'a'), 1, 'a database that is not in the list is left alone');
set('seqinbox.housekeeping_databases', q{'other'});
is_cleaned('other', 'a', 'a database that is added to the list');
$log = -s $node->logfile;
set('seqinbox.housekeeping_databases', q{'one, ,'});
ok($node->wait_for_log(qr/LOG:  invalid list syntax in parameter "seqinbox.housekeeping_databases"/, $log),
    'a list that makes no sense is logged');
set('seqinbox.housekeeping_databases', q{'one'});
expire('one', 'c');
is_cleaned('one', 'c', 'and the next list counts');

# a launcher that an administrator ends comes back
my $pid = pid_of($launcher);
is($node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)"), 't', 'the launcher is ended');
ok($node->poll_query_until('postgres', qq{
        SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = '$launcher' AND pid <> $pid}),
    'and comes back');
expire('one', 'c');
is_cleaned('one', 'c', 'and does its work');

# a fast shutdown: while the worker waits for a lock ...
$session = keep_waiting('one', 'b');
ok($node->stop('fast', fail_ok => 1), 'the server stops while the worker waits for a lock');
$session->{run}->finish;
$node->start;

# ... while it is busy, and nothing of a turn is left half done
$node->safe_psql('one', q{
    CREATE FUNCTION c.slow() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(0.01); RETURN OLD; END';
    CREATE TRIGGER slow BEFORE DELETE ON c.sequence_instance
        FOR EACH ROW WHEN (OLD.name = 'Orders') EXECUTE FUNCTION c.slow()});
expire('one', 'c', 1500);
ok($node->poll_query_until('one', q{SELECT count(*) <= 500 FROM c.sequence_instance WHERE name = 'Orders'}),
    'the worker has removed its first thousand');
ok($node->stop('fast', fail_ok => 1), 'the server stops while the worker is busy');
$node->start;
cmp_ok(remaining('one', 'c'), '<=', 500, 'what was done is kept');
$node->safe_psql('one', 'DROP TRIGGER slow ON c.sequence_instance');
is_cleaned('one', 'c', 'and the rest is done after the next start');

# ... and while the launcher has nothing to do
set('seqinbox.housekeeping_interval', q{'1d'});
ok($node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = '$worker')"),
    'no worker is left');
ok($node->stop('fast', fail_ok => 1), 'the server stops while the launcher waits');

# as many background workers as the server may have: logged, and tried again
$node->append_conf('postgresql.conf', 'max_worker_processes = 2');
$log = -s $node->logfile;
$node->start;
ok($node->wait_for_log(qr/LOG:  could not start a housekeeping worker for database "one"/, $log),
    'too few background workers are logged');
expire('one', 'c');
$node->append_conf('postgresql.conf', 'max_worker_processes = 8');
$node->restart;
is_cleaned('one', 'c', 'the first work is done at the start, however long the interval');
ok($node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = '$worker')"),
    'the last work for a day');

# a standby is read-only: it has a launcher when it is promoted
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
is( $standby->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'seqinbox%'"),
    0, 'no launcher on a standby');
expire('one', 'c');
$node->wait_for_catchup($standby);
$node->stop('immediate');
is($standby->safe_psql('one', q{SELECT count(*) FROM c.sequence_instance WHERE name = 'Orders'}),
    1, 'something is left to do');
$standby->promote;
ok($standby->poll_query_until('one', q{
        SELECT NOT EXISTS (SELECT FROM c.sequence_instance WHERE name = 'Orders')}),
    'after the promotion the work goes on');

done_testing();
