# Consumers may come through PgBouncer in transaction mode: each of their
# transactions may then be another server connection's, and each of these
# connections has been used by others.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxSql;
use SeqinboxTest;

# The package's directory is not in everybody's path.
$ENV{PATH} .= ':/usr/sbin';

my $node = new_node('main');
my $number = 0;
my @poolers;

# A new PgBouncer in front of the server, with this many server connections for
# all clients together: a copy of the node, which is reached through it.
sub start_pooler
{
    my ($pool_size, $more_conf) = @_;
    my $name = 'pgbouncer' . ++$number;
    my $ini = PostgreSQL::Test::Utils::tempdir . '/pgbouncer.ini';
    my $pool = bless({ %$node, _port => PostgreSQL::Test::Cluster::get_free_port() }, ref $node);

    append_to_file("$ini.users", join('', map { qq{"$_" ""\n} } getpwuid($<), 'app'));
    append_to_file($ini, qq{[databases]
* = host=@{[ $node->host ]} port=@{[ $node->port ]}
[pgbouncer]
pool_mode = transaction
default_pool_size = $pool_size
server_round_robin = 1
listen_port = @{[ $pool->port ]}
unix_socket_dir = @{[ $node->host ]}
auth_type = trust
auth_file = $ini.users
logfile = $PostgreSQL::Test::Utils::log_path/085_$name.log
} . ($more_conf // ''));
    push @poolers, IPC::Run::start([ 'pgbouncer', '-q', $ini ], '<', \undef);
    $pool->poll_query_until('postgres', 'SELECT true') or die 'PgBouncer does not answer';
    return $pool;
}

END
{
    my $exit_code = $?;

    $_->kill_kill foreach @poolers;
    $? = $exit_code;
}

# SQL as a client of the database "shop" whose search_path is set for the role.
sub app
{
    my ($pool, $sql) = @_;

    local $ENV{PGUSER} = 'app';
    return $pool->safe_psql('shop', $sql);
}

sub app_session
{
    my ($pool) = @_;

    local $ENV{PGUSER} = 'app';
    return open_session($pool, dbname => 'shop');
}

sub wait_until
{
    my ($what, $sql) = @_;

    $node->poll_query_until('shop', $sql) or die "timed out: $what";
    return;
}

my $waits_for_lock = q{
    SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ '^SELECT outcome'};

$node->safe_psql('postgres', q{
    CREATE ROLE app LOGIN;
    CREATE DATABASE shop OWNER app;
    ALTER ROLE app IN DATABASE shop SET search_path = orders, public});
$node->safe_psql('shop', 'CREATE EXTENSION seqinbox');

# All functions, each call in a transaction of its own, which goes to the other
# one of two server connections.

my $pool = start_pooler(2);
{
    my $first = app_session($pool);

    # both are there from now on
    in_session($first, 'BEGIN');
    app($pool, 'SELECT true');
    in_session($first, 'COMMIT');
    $first->quit;
}

my $declaration = q{{"sequences": [{"name": "Orders", "retentionPeriod": "7 days", "messages": [
    {"type": "Placed"}, {"type": "Paid", "releaseCondition": {"predecessor": "Placed"}},
    {"type": "Shipped", "releaseCondition": {"predecessor": "Paid"}}]}]}};

my @calls = (
    [ q{SELECT seqinbox_create_inbox('orders')}, '' ],
    [ qq{SELECT seqinbox_declare('$declaration')}, '' ],
    [ q{SELECT seqinbox_grant('app', 'consumer')}, '' ],
    [ q{SELECT seqinbox_version() <> ''}, 't' ],
    [ q{SELECT seqinbox_diagram('Orders') <> ''}, 't' ],

    # a context from beginning to end
    [ q{SELECT outcome FROM seqinbox_receive('Paid', 'paid-1', 'order-1', 'value', header_names => '{a}',
            header_values => '{b}')}, 'BUFFERED' ],
    [ q{SELECT outcome FROM seqinbox_receive('Paid', 'paid-1', 'order-1', 'value')}, 'DUPLICATE' ],
    [ q{SELECT state FROM seqinbox_lookup('Paid', 'paid-1')}, 'WAITING' ],
    [ q{SELECT waits_for, predecessor FROM seqinbox_waiting()}, 'PREDECESSOR|Placed' ],
    [ q{SELECT seqinbox_is_releasable('Paid', id) FROM sequence_instance WHERE context_id = 'order-1'}, 'f' ],
    [ q{SELECT ordinal, outcome FROM seqinbox_receive_batch('{Placed,Placed}', '{placed-1,placed-1}',
            '{order-1,order-1}', '{v,v}')}, "1|PROCESS\n2|DUPLICATE" ],
    [ q{SELECT idempotence_id, convert_from(message_value, 'UTF8'), header_names FROM seqinbox_next()},
        'paid-1|value|{a}' ],
    [ q{SELECT count(*) FROM seqinbox_next()}, 0 ],

    # failures and an operator
    [ q{SELECT seqinbox_record_failure('Shipped', 'shipped-1', 'order-1', 'error', 'value') > 0}, 't' ],
    [ q{SELECT seqinbox_retry(id) FROM sequenced_message WHERE idempotence_id = 'shipped-1'}, '' ],
    [ q{SELECT idempotence_id, attempts FROM seqinbox_next()}, 'shipped-1|1' ],
    [ q{SELECT outcome FROM seqinbox_receive('Paid', 'paid-2', 'order-2', 'value')}, 'BUFFERED' ],
    [ q{SELECT seqinbox_consume(id) FROM sequenced_message WHERE idempotence_id = 'paid-2'}, '' ],
    [ q{SELECT idempotence_id FROM seqinbox_next()}, 'paid-2' ],
    [ q{SELECT outcome FROM seqinbox_receive('Shipped', 'shipped-3', 'order-3', 'value')}, 'BUFFERED' ],
    [ q{SELECT seqinbox_expire(id) FROM sequenced_message WHERE idempotence_id = 'shipped-3'}, '' ],
    [ q{SELECT outcome FROM seqinbox_receive('Paid', 'paid-4', 'order-4', 'value')}, 'BUFFERED' ],
    [ q{SELECT seqinbox_consume_all(id) FROM sequence_instance WHERE context_id = 'order-4'}, '' ],
    [ q{SELECT idempotence_id FROM seqinbox_next()}, 'paid-4' ],
    [ q{SELECT outcome FROM seqinbox_receive('Paid', 'paid-5', 'order-5', 'value')}, 'BUFFERED' ],
    [ q{SELECT seqinbox_close(id) FROM sequence_instance WHERE context_id = 'order-5'}, '' ],
    [ q{SELECT outcome FROM seqinbox_receive('Paid', 'paid-6', 'order-6', 'value')}, 'BUFFERED' ],
    [ q{SELECT seqinbox_dead_letter(id, 'reason') > 0 FROM sequenced_message WHERE idempotence_id = 'paid-6'}, 't' ],
    [ q{SELECT r.outcome FROM dead_letter d, seqinbox_requeue(d.id) r WHERE d.idempotence_id = 'paid-6'}, 'BUFFERED' ],

    # claims by hand
    [ q{SELECT seqinbox_open_instance('Orders', 'order-7') > 0}, 't' ],
    [ q{SELECT seqinbox_claim('Placed', 'placed-7', id) FROM sequence_instance WHERE context_id = 'order-7'}, 't' ],
    [ q{SELECT seqinbox_try_claim('Placed', 'placed-7', id) FROM sequence_instance WHERE context_id = 'order-7'},
        'DUPLICATE' ],
    [ q{SELECT seqinbox_store('Placed', 'placed-7', id, 'WAITING', 'value') > 0
          FROM sequence_instance WHERE context_id = 'order-7'}, 't' ],
    [ q{SELECT seqinbox_fail_and_release(id) FROM sequenced_message WHERE idempotence_id = 'placed-7'}, 't' ],
    [ q{SELECT seqinbox_claim('Webhook', 'webhook-1')}, 't' ],

    # those who look, and housekeeping, which commits
    [ q{SELECT count(*) > 0 FROM seqinbox_message_stats()}, 't' ],
    [ q{SELECT count(*) > 0 FROM seqinbox_instance_stats()}, 't' ],
    [ q{CALL seqinbox_housekeeping()}, '0|0|0|0|0' ]);

my $session = app_session($pool);

sub connections_alternate
{
    my ($when) = @_;
    my $pid = 'SELECT pg_backend_pid()';

    isnt(in_session($session, $pid), in_session($session, $pid),
        "each transaction has another connection than the one before, $when");
    return;
}

connections_alternate('at first');
foreach my $call (@calls)
{
    my ($sql, $expected) = @$call;

    is(in_session($session, $sql), $expected, 'through the pooler: ' . ($sql =~ /(seqinbox_\w+)/)[0]);
}
connections_alternate('in the end');

is( $node->safe_psql('shop', q{
        SELECT proname FROM pg_proc JOIN pg_depend ON classid = 'pg_proc'::regclass AND objid = pg_proc.oid
          JOIN pg_extension e ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid
         WHERE extname = 'seqinbox' EXCEPT SELECT unnest(string_to_array('}
          . join(',', map { $_->[0] =~ /(seqinbox_\w+)/g } @calls) . q{', ',')) ORDER BY 1}),
    '', 'no function was left out');

# Two clients meet at one message: each has a server connection while its
# transaction lasts, and gives it back after.

my $other = app_session($pool);

is( in_session($session, q{
        BEGIN;
        SELECT outcome FROM seqinbox_receive('Placed', 'placed-8', 'order-8', 'value')}),
    'PROCESS', 'the first delivery is being handled');
$other->query_until(qr/asked/, q{
\echo asked
SELECT outcome FROM seqinbox_receive('Placed', 'placed-8', 'order-8', 'value');
});
wait_until('the copy waits', $waits_for_lock);
is(in_session($session, 'COMMIT'), '', 'it can be committed');
is(in_session($other, q{SELECT 'next'}), "DUPLICATE\nnext", 'then its copy is a duplicate');

# A message is handed out in a transaction. Its client ends in the middle: the
# server connection isn't given to others as it is.

is( in_session($session, q{
        SELECT outcome FROM seqinbox_receive('Paid', 'paid-9', 'order-9', 'value');
        SELECT outcome FROM seqinbox_receive('Placed', 'placed-9', 'order-9', 'value')}),
    "BUFFERED\nPROCESS", 'a message waits to be handed out');
my $next = q{SELECT idempotence_id FROM sequence_instance i, seqinbox_next(i.id) WHERE i.context_id = 'order-9'};
my $dying = app_session($pool);
is(in_session($dying, "BEGIN; $next"), 'paid-9', 'it is handed out');
$dying->{run}->kill_kill(grace => 0);
wait_until('nothing is handed out', q{
    SELECT count(*) = 0 FROM pg_stat_activity WHERE state = 'idle in transaction'});
is(in_session($session, "BEGIN; $next; ROLLBACK"), 'paid-9', 'it is handed out again, after a client died');
is(in_session($session, "BEGIN; $next; COMMIT"), 'paid-9', 'and again, after a rollback');
is(in_session($session, "BEGIN; $next; COMMIT"), '', 'and no more after a commit');

# Savepoints

is( in_session($session, q{
        BEGIN;
        SAVEPOINT s;
        SELECT seqinbox_claim('Webhook', 'webhook-2');
        ROLLBACK TO s;
        SELECT seqinbox_try_claim('Webhook', 'webhook-2');
        RELEASE s;
        COMMIT;
        SELECT seqinbox_try_claim('Webhook', 'webhook-2')}),
    "t\nCLAIMED\nDUPLICATE", 'savepoints free claims');

$session->quit;
$other->quit;

# Settings, with a single server connection, so that all clients share it

my $single = start_pooler(1);
my $show = 'SHOW seqinbox.idle_timeout; SHOW idle_in_transaction_session_timeout; SHOW search_path';
my $clean = "10min\n0\norders, public";

# From PostgreSQL 18 on, the server tells its clients when it changes, and newer
# versions of PgBouncer keep such a setting for each client.
my $keeps_path = $node->safe_psql('postgres', 'SHOW server_version_num') >= 180000;

is(app($single, "SELECT seqinbox_claim('Webhook', 'webhook-3')"), 't', 'the library is loaded');
is(app($single, $show), $clean, 'settings as the server has them');
is( app($single, qq{
        BEGIN;
        SET LOCAL seqinbox.idle_timeout = '30s';
        SET LOCAL search_path = nowhere, orders;
        SELECT seqinbox_claim('Webhook', 'webhook-4');
        $show;
        COMMIT}),
    "t\n30s\n30s\nnowhere, orders", 'SET LOCAL counts in the transaction');
is(app($single, $show), $clean, 'and the next client sees nothing of it');

is(app($single, q{SET seqinbox.idle_timeout = '20s'; SET search_path = public}), '', 'SET in one client');
is( app($single, $show), "20s\n0\n" . ($keeps_path ? 'orders, public' : 'public'),
    'is what the next client gets: never use it here');
unless ($keeps_path)
{
    local $ENV{PGUSER} = 'app';
    like(sql_error($single, q{SELECT seqinbox_claim('Webhook', 'webhook-5')}, dbname => 'shop'),
        qr/ERROR:  42P01: there is no inbox in the search path/, 'which may have lost its inbox');
}
is(app($single, 'RESET ALL'), '', 'RESET repairs it');
is(app($single, $show), $clean, 'for all clients');

# The options of a connection
{
    local $ENV{PGOPTIONS} = '-c search_path=public';
    local $ENV{PGUSER} = 'app';
    my $ignoring = start_pooler(1, "ignore_startup_parameters = options\n");

    if ($keeps_path)
    {
        is(app($single, 'SHOW search_path'), 'public', 'options of the connection are kept');
    }
    else
    {
        my (undef, undef, $stderr) = $single->psql('shop', 'SELECT true');

        like($stderr, qr/unsupported startup parameter/, 'options of the connection are refused');
        is(app($ignoring, 'SHOW search_path'), 'orders, public', 'or ignored without a word');
    }
}

# Prepared statements. pgbench prepares in the way of drivers.

my $script = PostgreSQL::Test::Utils::tempdir . '/script';
append_to_file($script, q{
\set n random(1, 1000)
\set context random(1, 50)
BEGIN;
SELECT outcome FROM seqinbox_receive('Placed', 'bench ' || :n, 'bench ' || :context, 'value');
END;
});

sub pgbench
{
    my ($through, $mode, $clients) = @_;
    my $transactions = 20 * $clients;
    my ($output, $error) = ('', '');

    # it waits for the answer to a PREPARE, so each client has a thread
    IPC::Run::run([ 'pgbench', '-n', '-M', $mode, '-c', $clients, '-j', $clients, '-t', 20, '-f', $script,
            '-U', 'app', '-h', $through->host, '-p', $through->port, 'shop' ],
        '>', \$output, '2>', \$error);
    return $? == 0 && $output =~ m{actually processed: $transactions/$transactions} ? 'ok' : $error;
}

is(pgbench($pool, 'simple', 6), 'ok', 'six clients on two connections: no statement is prepared');
is(pgbench($pool, 'extended', 6), 'ok', 'unnamed prepared statements');

my ($major, $minor) = `pgbouncer --version` =~ /PgBouncer (\d+)\.(\d+)/;
if ($major > 1 || $minor >= 21)
{
    is(pgbench(start_pooler(2, "max_prepared_statements = 100\n"), 'prepared', 6), 'ok',
        'named prepared statements');
}
else
{
    # more clients would wait for the connection of one that has given up
    like(pgbench($pool, 'prepared', 1), qr/prepared statement "\w+" (?:does not exist|already exists)/,
        'named prepared statements are not for this version');
}

is( $node->safe_psql('shop', q{
        SELECT count(*) - count(DISTINCT idempotence_id), count(*) > 100, bool_and(state = 'PROCESSED')
          FROM orders.sequenced_message WHERE idempotence_id LIKE 'bench %'}),
    '0|t|t', 'each message was taken in once');

done_testing();
