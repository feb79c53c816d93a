# The roles of the reference can do what they are for with the GRANTs that
# stand there, none of which is superfluous, and a clear error says what is
# missing.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxSql;
use SeqinboxTest;

# The GRANTs of a role, one [privilege, object] each. The reference gives them
# for a schema "orders".
sub documented_grants
{
    my ($reference, $role) = @_;
    my @grants;

    while ($reference =~ /^GRANT ([A-Z, ]+?)\s+ON ([^;]+?) TO $role;/mg)
    {
        my ($privileges, $objects) = ($1, $2);
        my $kind = $objects =~ s/^((?:ALL TABLES IN )?[A-Z]+) // ? $1 : 'TABLE';

        foreach my $object (split /,\s*/, $objects)
        {
            push @grants, map { [ $_, "$kind $object" ] } split(/, /, $privileges);
        }
    }
    return @grants;
}

my $node = new_node('main');
$node->safe_psql('postgres', q{
    CREATE EXTENSION seqinbox;
    SELECT seqinbox_create_inbox('orders');
    SET search_path = orders;
    SELECT seqinbox_declare('{"sequences": [{"name": "OrderSequence", "retentionPeriod": "24h",
        "messages": [{"type": "OrderCreated"},
                     {"type": "OrderShipped", "releaseCondition": {"predecessor": "OrderCreated"}}]}]}');
    SELECT seqinbox_receive('OrderShipped', 'waiting', 'order-1', 'value', 'key', ARRAY['h'], ARRAY['v']::bytea[]);
    SELECT seqinbox_record_failure('OrderShipped', 'failed', 'order-1', 'error', 'value')});

my $instance = $node->safe_psql('postgres',
    q{SELECT id FROM orders.sequence_instance WHERE context_id = 'order-1'});
my ($waiting, $failed) = split /\n/, $node->safe_psql('postgres',
    'SELECT id FROM orders.sequenced_message ORDER BY idempotence_id DESC');

# Calls as SQL; where there are two, the first is made by a superuser.
my %looks = (
    'waiting' => [ q{SELECT * FROM seqinbox_waiting()} ],
    'diagram' => [ q{SELECT seqinbox_diagram('OrderSequence', 'order-1')} ],
    'is_releasable' => [ qq{SELECT seqinbox_is_releasable('OrderShipped', $instance)} ],
    'lookup' => [ q{SELECT * FROM seqinbox_lookup('OrderShipped', 'waiting')} ]);
my %idempotence = (
    'claim without an instance' => [ q{SELECT seqinbox_claim('Webhook', 'new')} ],
    'claim without an instance where none was made ahead' =>
      [ q{SET seqinbox.idempotence_retention = '1h'; SELECT seqinbox_claim('Webhook', 'new')} ]);
my $arrive = q{SELECT seqinbox_receive('OrderCreated', 'new', 'order-1', 'value')};

my %roles = (
    order_app => {
        %looks, %idempotence,
        'claim' => [ qq{SELECT seqinbox_claim('OrderCreated', 'new', $instance)} ],
        'try_claim' => [ qq{SELECT seqinbox_try_claim('OrderCreated', 'new', $instance)} ],
        'try_claim of a duplicate' =>
          [ qq{SELECT seqinbox_try_claim('OrderShipped', 'waiting', $instance)} ],
        'try_claim without an instance' => [ q{SELECT seqinbox_try_claim('Webhook', 'new')} ],
        'open_instance' => [ q{SELECT seqinbox_open_instance('OrderSequence', 'new')} ],
        'open_instance of an existing one' =>
          [ q{SELECT seqinbox_open_instance('OrderSequence', 'order-1')} ],
        'store of a processed message' =>
          [ qq{SELECT seqinbox_store('OrderCreated', 'new', $instance, 'PROCESSED')} ],
        'store of a waiting message' => [ qq{
            SELECT seqinbox_store('OrderCreated', 'new', $instance, 'WAITING', 'value',
                header_names => ARRAY['h'], header_values => ARRAY['v']::bytea[])} ],
        'store over a record' =>
          [ qq{SELECT seqinbox_store('OrderShipped', 'waiting', $instance, 'PROCESSED')} ],
        'fail_and_release' => [ qq{SELECT seqinbox_fail_and_release($waiting, 'error', '1 minute')} ],
        'record_failure' => [ q{
            SELECT seqinbox_record_failure('OrderCreated', 'new', 'new', 'error', 'value',
                header_names => ARRAY['h'], header_values => ARRAY['v']::bytea[])} ],
        'receive of a message to handle' => [ $arrive ],
        'receive of a message to buffer' =>
          [ q{SELECT seqinbox_receive('OrderShipped', 'new', 'new', 'value', 'key', ARRAY['h'], ARRAY['v']::bytea[])} ],
        'receive of a failed message' =>
          [ q{SELECT seqinbox_receive('OrderShipped', 'failed', 'order-1', 'value')} ],
        'receive_batch' => [ q{
            SELECT seqinbox_receive_batch(ARRAY['OrderShipped', 'OrderCreated'], ARRAY['new-1', 'new-2'],
                ARRAY['new', 'new'], ARRAY['value', 'value']::bytea[])} ],
        'next' => [ $arrive, 'SELECT * FROM seqinbox_next()' ],
        'next of an instance' => [ $arrive, "SELECT * FROM seqinbox_next($instance)" ],
        'next where there is nothing' => [ "SELECT * FROM seqinbox_next($instance)" ],
        'next of a message to expire' => [
            "UPDATE orders.sequenced_message SET pending_action = 'EXPIRE' WHERE id = $waiting",
            "SELECT * FROM seqinbox_next($instance)" ],
        'next of an instance to close' => [
            "UPDATE orders.sequence_instance SET pending_action = 'CLOSE' WHERE id = $instance",
            "SELECT * FROM seqinbox_next($instance)" ],
    },
    order_operator => {
        %looks,
        'declare' => [ q{
            SELECT seqinbox_declare('{"sequences": [{"name": "OrderSequence", "retentionPeriod": "48h",
                "messages": [{"type": "OrderShipped"}]}, {"name": "New", "retentionPeriod": "24h",
                "messages": [{"type": "New"}]}]}')} ],
        'consume' => [ "SELECT seqinbox_consume($waiting)" ],
        'expire' => [ "SELECT seqinbox_expire($waiting)" ],
        'retry' => [ "SELECT seqinbox_retry($failed)" ],
        'consume_all' => [ "SELECT seqinbox_consume_all($instance)" ],
        'close' => [ "SELECT seqinbox_close($instance)" ],
    },
    webhook_app => \%idempotence);

# The errors of calls by their names, '' where there is none. The calls leave
# no trace.
sub errors_as
{
    my ($role, %calls) = @_;
    my $script = '';

    foreach my $name (keys %calls)
    {
        my @sql = @{ $calls{$name} };
        my $last = pop @sql;

        $script .= join(";\n", "\\warn == $name\nBEGIN", 'SET LOCAL search_path = orders', @sql,
            "SET LOCAL SESSION AUTHORIZATION $role", $last, "ROLLBACK;\n");
    }
    my ($exit_code, $stdout, $stderr) = $node->psql('postgres', $script,
        on_error_stop => 0, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
    my (undef, %errors) = split /^== (.*)\n?/m, $stderr, -1;

    die 'not all calls were made' if keys %errors != keys %calls;
    return %errors;
}

sub all_are
{
    my ($expected, $name, %errors) = @_;

    like($errors{$_}, $expected, "$name: $_") foreach sort keys %errors;
    return;
}

sub grant
{
    my ($role, $privilege, $object) = @_;

    $node->safe_psql('postgres', "GRANT $privilege ON $object TO $role");
    return;
}

my $reference = slurp_file("$FindBin::RealBin/../../docs/reference.md");

foreach my $role (sort keys %roles)
{
    my %calls = %{ $roles{$role} };
    my @grants = documented_grants($reference, $role);

    is(join(' ON ', @{ $grants[0] }), 'USAGE ON SCHEMA orders', "the reference has GRANTs for $role");
    $node->safe_psql('postgres', "CREATE ROLE $role");
    all_are(qr/ERROR:  42P01: there is no inbox.*HINT:  .*seqinbox_create_inbox/s,
        "$role without USAGE on the schema", errors_as($role, %calls));

    grant($role, @{ shift @grants });
    all_are(qr/ERROR:  42501: permission denied for (table|sequence) \w+/,
        "$role with nothing but USAGE on the schema", errors_as($role, %calls));

    grant($role, @$_) foreach @grants;
    all_are(qr/^$/, "$role with all grants", errors_as($role, %calls));

    foreach my $grant (@grants)
    {
        my ($privilege, $object) = @$grant;
        my $relation = $object =~ /^ALL/ ? '\w+' : $object =~ s/.*\.//r;

        $node->safe_psql('postgres', "REVOKE $privilege ON $object FROM $role");
        my %errors = errors_as($role, %calls);
        my @refused = grep { $errors{$_} ne '' } sort keys %calls;

        isnt("@refused", '', "$role needs $privilege on $object");
        note("for $_") foreach @refused;
        is(join("\n", grep { !/ERROR:  42501: permission denied for \w+ $relation\n/ } @errors{@refused}),
            '', 'and the error names it');
        grant($role, @$grant);
    }
}

# what the reference says in passing
my %try_claim = ('try_claim' => [ q{SELECT seqinbox_try_claim('Webhook', 'new')} ]);
all_are(qr/ERROR:  42501: permission denied for table sequence_instance/,
    'with the GRANTs for claim', errors_as('webhook_app', %try_claim));
$node->safe_psql('postgres', 'GRANT UPDATE (state) ON orders.sequence_instance TO webhook_app');
all_are(qr/^$/, 'with UPDATE on one column', errors_as('webhook_app', %try_claim));

$node->safe_psql('postgres', q{
    CREATE ROLE onlooker;
    GRANT USAGE ON SCHEMA orders TO onlooker;
    GRANT SELECT ON orders.sequence_instance, orders.sequenced_message,
        orders.sequence_declaration, orders.message_type_declaration TO onlooker});
all_are(qr/^$/, 'who only looks', errors_as('onlooker', %looks));

# roles that set up inboxes
like(
    sql_error($node, q{SET SESSION AUTHORIZATION webhook_app; SELECT seqinbox_create_inbox('mine')}),
    qr/ERROR:  42501: permission denied for database/,
    'a role without CREATE on the database can create no schema');
$node->safe_psql('postgres', 'CREATE SCHEMA foreign_schema');
like(
    sql_error($node, q{SET SESSION AUTHORIZATION webhook_app; SELECT seqinbox_create_inbox('foreign_schema')}),
    qr/ERROR:  42501: permission denied for schema foreign_schema/,
    'nor tables in a schema where it may not');
$node->safe_psql('postgres', q{ALTER TABLE orders.sequenced_message DROP COLUMN last_error});
like(
    sql_error($node, q{SET SESSION AUTHORIZATION order_app; SELECT seqinbox_create_inbox('orders')}),
    qr/ERROR:  42501: must be owner of table sequenced_message/,
    q{nor complete another role's inbox});

$node->safe_psql('postgres', q{
    CREATE ROLE owner_of_inbox;
    CREATE SCHEMA own AUTHORIZATION owner_of_inbox});
is( $node->safe_psql('postgres', q{
        SET SESSION AUTHORIZATION owner_of_inbox;
        SELECT seqinbox_create_inbox('own');
        SET search_path = own;
        SELECT seqinbox_claim('Webhook', '1'), seqinbox_claim('Webhook', '1');
        SELECT count(*) FROM pg_tables
         WHERE schemaname = 'own' AND tableowner <> 'owner_of_inbox'}),
    "\nt|f\n0", 'a role that is no superuser makes an inbox in its own schema and owns it');

done_testing();
