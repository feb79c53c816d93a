# The disk is full. Calls fail, or the server does, and nothing is left by
# halves; when there is space again, everything that wasn't acknowledged can be
# done, and what was acknowledged is there.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxLoad;
use SeqinboxSql;
use SeqinboxTest;

my $disk = small_disk(1);
plan skip_all => 'no small disk: they can be mounted by root alone' unless $disk;

sub fill_disk
{
    my ($directory) = @_;

    open(my $file, '>>', "$directory/filler") or die "cannot write: $!";
    foreach my $size (65536, 4096)
    {
        my $block = "\0" x $size;

        1 while syswrite($file, $block);
    }
    ok($!{ENOSPC}, 'the disk is full');
    close($file);
    return;
}

sub free_disk
{
    my ($directory) = @_;

    unlink("$directory/filler") or die "cannot free the disk: $!";
    return;
}

# Only the tables are on the small disk, so calls fail, and the server goes on.

my $node = new_node('tables');
mkdir("$disk/tables") or die "cannot make a directory: $!";
$node->safe_psql('postgres', "CREATE TABLESPACE small LOCATION '$disk/tables'");
$node->safe_psql('postgres', 'CREATE DATABASE shop TABLESPACE small');
$node->safe_psql('shop', q{
    CREATE EXTENSION seqinbox;
    SELECT seqinbox_create_inbox('inbox');
    SET search_path = inbox, public;
    SELECT seqinbox_declare('{"sequences": [{"name": "Orders", "retentionPeriod": "1 day", "messages": [
        {"type": "Placed"}, {"type": "Paid", "releaseCondition": {"predecessor": "Placed"}}]}]}');
    CREATE TABLE public.business (idempotence_id text, padding text);

    -- more than fits into what is left of a page, and can't be compressed
    CREATE FUNCTION public.big() RETURNS bytea LANGUAGE sql AS $$
        SELECT string_agg(decode(md5(n::text), 'hex'), '') FROM generate_series(1, 60000) AS n $$;

    CREATE FUNCTION public.small(n int) RETURNS text LANGUAGE plpgsql AS $$
    BEGIN
        RETURN (SELECT outcome FROM seqinbox_receive('Placed', 'small-' || n, 'small-' || n, repeat('x', 50)::bytea));
    EXCEPTION WHEN disk_full THEN
        RETURN SQLSTATE;
    END $$});

my $session = open_session($node, dbname => 'shop');

sub run_in_session
{
    my ($sql) = @_;
    my $result = in_session($session, $sql);

    return $result =~ /ERROR:  (\w{5})/ ? $1 : $result;
}

# What becomes of 300 small deliveries, each in a transaction of its own.
sub small_deliveries
{
    return split /\n/, $node->safe_psql('shop',
        'SET search_path = inbox, public;' . join('', map { "SELECT small($_);\n" } 1 .. 300));
}

# What is in the inbox, row by row.
sub content
{
    return $node->safe_psql('shop', q{
        SET search_path = inbox;
        SELECT 'instance', id, state, release_due_at FROM sequence_instance WHERE name = 'Orders' ORDER BY id;
        SELECT 'message', id, state, attempts FROM sequenced_message ORDER BY id;
        SELECT 'claim', idempotence_id FROM sequential_inbox_idempotence ORDER BY idempotence_id;
        SELECT 'payload', id, length(message_value) FROM buffered_message ORDER BY id;
        SELECT 'dead letter', id, length(message_value) FROM dead_letter ORDER BY id});
}

# every statement is known to the session, and its plan saved
run_in_session('SET search_path = inbox, public');
is(run_in_session(q{
        SELECT outcome FROM seqinbox_receive('Paid', 'waits', 'order-1', big());
        SELECT outcome FROM seqinbox_receive('Placed', 'placed', 'order-1', 'v');
        SELECT outcome FROM seqinbox_receive('Paid', 'expired', 'order-2', big());
        SELECT ordinal FROM seqinbox_receive_batch('{Paid}', '{batch}', '{order-3}', ARRAY[big()]);
        SELECT seqinbox_record_failure('Paid', 'failed', 'order-4', 'error', big()) > 0}),
    "BUFFERED\nPROCESS\nBUFFERED\n1\nt", 'there is space');
run_in_session(q{
    UPDATE sequence_instance
       SET created_at = created_at - interval '2 days', retain_until = retain_until - interval '2 days',
           remove_after = retain_until - interval '1 day'
     WHERE context_id = 'order-2';
    UPDATE sequential_inbox_idempotence SET created_at = created_at - interval '2 days'
     WHERE idempotence_id = 'expired'});

my %fails = (
    'receive' => q{SELECT outcome FROM seqinbox_receive('Paid', 'new', 'order-5', big())},
    'receive_batch' => q{SELECT outcome FROM seqinbox_receive_batch('{Paid,Paid}', '{new-1,new-2}',
        '{order-5,order-6}', ARRAY['v', big()])},
    'record_failure' => q{SELECT seqinbox_record_failure('Paid', 'new', 'order-5', 'error', big()) > 0},
    'store' => q{SELECT seqinbox_store('Paid', 'new', id, 'WAITING', big()) > 0
        FROM sequence_instance WHERE context_id = 'order-1'},
    'dead_letter' => q{SELECT seqinbox_dead_letter(id, 'reason') > 0
        FROM sequenced_message WHERE idempotence_id = 'failed'},
    'housekeeping' => q{CALL seqinbox_housekeeping('0')},
    'a handler' => q{BEGIN; SELECT idempotence_id FROM seqinbox_next();
        INSERT INTO business SELECT 'waits', encode(big(), 'hex'); COMMIT});
my %succeeds = (
    'receive' => 'BUFFERED',
    'receive_batch' => "BUFFERED\nBUFFERED",
    'record_failure' => 't',
    'store' => 't',
    'dead_letter' => 't',
    'housekeeping' => '0|0|1|1|0',
    'a handler' => 'waits');

my $before = content();
fill_disk($disk);
foreach my $name (sort keys %fails)
{
    my $error = in_session($session, $fails{$name});

    like($error, qr/ERROR:  53100: .*No space left on device/, "no space: $name fails");
}
is(content(), $before, 'and nothing has changed');

# Small ones succeed until a page is needed.
my @outcomes = small_deliveries();
my %outcomes = map { $_ => 1 } @outcomes;
is_deeply([ sort keys %outcomes ], [ '53100', 'PROCESS' ], 'small deliveries: some succeed, some fail');

free_disk($disk);

is_deeply([ small_deliveries() ], [ map { $_ eq 'PROCESS' ? 'DUPLICATE' : 'PROCESS' } @outcomes ],
    'what was acknowledged is a duplicate, what failed is taken in');
foreach my $name (sort keys %fails)
{
    # those that have the same message stand for it one after the other
    my $sql = $fails{$name} =~ s/'new'/'$name'/r;

    is(in_session($session, $sql), $succeeds{$name}, "space again, same session: $name");
}
is(run_in_session(q{SELECT count(*), min(length(message_value)) = length(big()) FROM dead_letter}),
    '2|t', 'dead letters have their payload');
$session->quit;
$node->stop;

# The server can't write its WAL any more, and ends. (Its tables are elsewhere.)
# It keeps all of it: with segments to use again it could go on for ever.

$node = new_node('wal',
    init => [ extra => [ '--wal-segsize=1' ] ],
    conf => "wal_keep_size = 1GB\n",
    disk => 2);
my $elsewhere = PostgreSQL::Test::Utils::tempdir;
$node->safe_psql('postgres', "CREATE TABLESPACE elsewhere LOCATION '$elsewhere'");
$node->safe_psql('template1', 'ALTER DATABASE postgres SET TABLESPACE elsewhere');
create_load($node);

# little is left to fill while they are at work
my $full = "$ENV{SEQINBOX_SMALL_DISKS}/2";
fill_disk($full);
truncate("$full/filler", (-s "$full/filler") - 32 * 1024 * 1024) or die "cannot truncate: $!";
my @clients = start_clients($node, 1, 10);

# it may have some segments of the WAL in store, and remove another file
foreach my $attempt (1 .. 100)
{
    fill_disk($full);
    last if $node->psql('postgres', 'SELECT pg_switch_wal()') != 0;
}
my @acknowledged = finish_clients(@clients);
like(slurp_file($node->logfile), qr/PANIC: .*No space left on device/, 'the server has given up');
wait_for_end_of($node->{_pid});
$node->_update_pid(-1);
fill_disk($full);
ok(!$node->start(fail_ok => 1), 'it cannot start while there is no space');

free_disk($full);
$node->start;
check_load($node, 1, 'full disk', \@acknowledged);

done_testing();
