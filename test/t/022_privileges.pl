# seqinbox_grant: each function for each privilege and for none; and nothing is
# granted that no function needs.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxSql;
use SeqinboxTest;

my @privileges = qw(consumer operator observer);
my $node = new_node('main');

$node->safe_psql('postgres', q{
    CREATE EXTENSION seqinbox;
    SELECT seqinbox_create_inbox('inbox');
    SET search_path = inbox;
    SELECT seqinbox_declare('{"sequences": [{"name": "Orders", "retentionPeriod": "24h", "messages": [
        {"type": "Created"}, {"type": "Shipped", "releaseCondition": {"predecessor": "Created"}}]}]}');
    CREATE TABLE id (name text PRIMARY KEY, id bigint);
    INSERT INTO id
    SELECT 'waiting', id FROM seqinbox_receive('Shipped', 's-1', 'order-1', 'v', 'k', '{h}', '{v}');
    INSERT INTO id
    SELECT 'failed', seqinbox_record_failure('Created', 'c-1', 'order-1', 'error', 'v', 'k', '{h}', '{v}');
    INSERT INTO id
    SELECT 'other failed', seqinbox_record_failure('Created', 'c-2', 'order-2', 'error', 'v', 'k', '{h}', '{v}');
    INSERT INTO id
    SELECT 'letter', seqinbox_dead_letter(id.id, 'reason') FROM id WHERE name = 'other failed';
    INSERT INTO id
    SELECT 'instance', sequence_instance_id FROM sequenced_message WHERE idempotence_id = 's-1';
    SELECT seqinbox_receive('Created', 'c-3', 'ready', 'v');
    INSERT INTO id
    SELECT 'ready', seqinbox_store('Shipped', 's-2', sequence_instance_id, 'WAITING', 'v')
      FROM sequenced_message WHERE idempotence_id = 'c-3';
    SELECT seqinbox_record_failure('Created', 'c-4', 'retried', 'error', 'v', 'k', '{h}', '{v}', retry_after => '0');
    INSERT INTO id SELECT 'ready instance', id FROM sequence_instance WHERE context_id = 'ready';
    INSERT INTO id SELECT 'retried instance', id FROM sequence_instance WHERE context_id = 'retried';
    UPDATE sequence_instance SET release_due_at = NULL;
    CREATE ROLE nobody_in_particular LOGIN;
    CREATE ROLE consumer LOGIN;
    CREATE ROLE operator LOGIN;
    CREATE ROLE observer LOGIN});
my %id = map { split /\|/ } split /\n/, $node->safe_psql('postgres', 'SELECT * FROM inbox.id');

# One session for all, since the privileges are those of the moment; and one of
# a database where housekeeping may remove what the other calls need.
$node->safe_psql('postgres', 'CREATE DATABASE housekeeping TEMPLATE postgres');
my $session = open_session($node);
my $housekeeping = open_session($node, dbname => 'housekeeping');

# What is to be removed, and all that depends on it.
my $expired = q{
    DELETE FROM inbox.message_header;
    DELETE FROM inbox.buffered_message;
    DELETE FROM inbox.sequenced_message;
    DELETE FROM inbox.dead_letter;
    DELETE FROM inbox.sequence_instance WHERE name = 'Orders' OR context_id ~ '/00$';
    SET search_path = inbox;
    SELECT seqinbox_record_failure('Created', 'x-' || n, 'expired-' || n, 'error', 'v', 'k', '{h}', '{v}')
      FROM generate_series(1, 2) AS n;
    SELECT seqinbox_claim('Created', 'x', id) FROM sequence_instance WHERE name = 'Orders';
    SELECT seqinbox_dead_letter(seqinbox_record_failure('Created', 'y', 'y', 'error'), 'reason');
    UPDATE sequential_inbox_idempotence SET created_at = '2000-01-01';
    UPDATE sequence_instance SET created_at = '2000-01-01', retain_until = '2000-01-02' WHERE name = 'Orders';
    UPDATE sequence_instance SET remove_after = '2000-01-02' WHERE context_id = 'expired-1';
    UPDATE dead_letter SET removed_at = '2000-01-01'};

# Those who may, the call, and what has to be there for it.
my $all = 'consumer operator observer';
my $working = 'consumer operator';
my %calls = (
    'claim' => [ $working => "SELECT seqinbox_claim('Created', 'new', $id{instance})" ],
    'claim without an instance' => [ $working => q{SELECT seqinbox_claim('Webhook', 'new')} ],
    'claim without an instance where none was made ahead' =>
      [ $working => q{SET seqinbox.idempotence_retention = '1h'; SELECT seqinbox_claim('Webhook', 'new')} ],
    'try_claim' => [ $working => "SELECT seqinbox_try_claim('Created', 'new', $id{instance})" ],
    'try_claim without an instance' => [ $working => q{SELECT seqinbox_try_claim('Webhook', 'new')} ],
    'open_instance' => [ $working => q{SELECT seqinbox_open_instance('Orders', 'new')} ],
    'open_instance of an existing one' => [ $working => q{SELECT seqinbox_open_instance('Orders', 'order-1')} ],
    'store of a waiting message' => [ $working => qq{
        SELECT seqinbox_store('Created', 'new', $id{instance}, 'WAITING', 'v', 'k', '{h}', '{v}')} ],
    'store over a record' =>
      [ $working => "SELECT seqinbox_store('Shipped', 's-1', $id{instance}, 'PROCESSED')" ],
    'lookup' => [ $all => q{SELECT * FROM seqinbox_lookup('Created', 'c-1')} ],
    'fail_and_release' => [ $working => "SELECT seqinbox_fail_and_release($id{waiting}, 'error', '1 minute')" ],
    'record_failure' => [ $working =>
          q{SELECT seqinbox_record_failure('Created', 'new', 'new', 'error', 'v', 'k', '{h}', '{v}')} ],
    'receive, buffered' => [ $working =>
          q{SELECT seqinbox_receive('Shipped', 'new', 'new', 'v', 'k', '{h}', '{v}')} ],
    'receive, processed' => [ $working => q{SELECT seqinbox_receive('Created', 'new', 'order-1', 'v')} ],
    'receive of a failed message' => [ $working => q{SELECT seqinbox_receive('Created', 'c-1', 'order-1', 'v')} ],
    'receive of a duplicate' => [ $working => q{SELECT seqinbox_receive('Shipped', 's-1', 'order-1', 'v')} ],
    'receive_batch' => [ $working => q{
        SELECT * FROM seqinbox_receive_batch('{Created,Shipped}', '{new,new}', '{new,newer}', '{v,v}')} ],
    'next' => [ $working => "SELECT * FROM seqinbox_next($id{'ready instance'})" ],
    'next of any instance' => [ $working => 'SELECT * FROM seqinbox_next()' ],
    'next for a retry' => [ $working => "SELECT * FROM seqinbox_next($id{'retried instance'})" ],
    'next with a pending EXPIRE' => [ $working => 'SELECT * FROM seqinbox_next()',
        "UPDATE inbox.sequenced_message SET pending_action = 'EXPIRE' WHERE id = $id{waiting}" ],
    'next with a pending CLOSE' => [ $working => 'SELECT * FROM seqinbox_next()',
        "UPDATE inbox.sequence_instance SET pending_action = 'CLOSE' WHERE id = $id{instance}" ],
    'is_releasable' => [ $all => "SELECT seqinbox_is_releasable('Shipped', $id{instance})" ],
    'waiting' => [ $all => 'SELECT * FROM seqinbox_waiting()' ],
    'diagram' => [ $all => q{SELECT seqinbox_diagram('Orders', 'order-1')} ],
    'message_stats' => [ $all => 'SELECT * FROM seqinbox_message_stats()' ],
    'instance_stats' => [ 'operator observer' => 'SELECT * FROM seqinbox_instance_stats()' ],

    # an operator's steps are what next does too when it finds them pending, so
    # a consumer has the rights that they need
    'consume' => [ $working => "SELECT seqinbox_consume($id{waiting})" ],
    'expire' => [ $working => "SELECT seqinbox_expire($id{waiting})" ],
    'retry' => [ $working => "SELECT seqinbox_retry($id{failed})" ],
    'consume_all' => [ $working => "SELECT seqinbox_consume_all($id{instance})" ],
    'close' => [ $working => "SELECT seqinbox_close($id{instance})" ],
    'dead_letter' => [ $working => "SELECT seqinbox_dead_letter($id{waiting}, 'reason')" ],

    'declare' => [ operator => q{SELECT seqinbox_declare('{"sequences": [
        {"name": "Orders", "retentionPeriod": "24h", "messages": [{"type": "Created"}, {"type": "Shipped"}]},
        {"name": "New", "retentionPeriod": "24h", "messages": [{"type": "New"}]}]}')} ],
    'requeue' => [ operator => "SELECT seqinbox_requeue($id{letter})" ],
    'housekeeping' =>
      [ operator => q{CALL seqinbox_housekeeping(keep_dead_letters => '1 day')}, $expired ]);

# A call's error. The call leaves no trace.
sub error_of
{
    my ($role, $call) = @_;
    my ($roles, $sql, $setup) = @{ $calls{$call} };
    my $commits = $call eq 'housekeeping';
    my $in = $commits ? $housekeeping : $session;

    in_session($in, ($commits ? 'SELECT' : 'BEGIN') . '; ' . ($setup // 'SELECT'));
    my $result = in_session($in, "SET SESSION AUTHORIZATION $role; SET search_path = inbox; $sql");
    in_session($in, ($commits ? 'SELECT' : 'ROLLBACK')
          . '; RESET SESSION AUTHORIZATION; RESET seqinbox.idempotence_retention');
    return $result =~ /ERROR: / ? $result : 'no error';
}

sub may
{
    my ($role, $call) = @_;

    return $calls{$call}[0] =~ /\b$role\b/;
}

sub grants_of
{
    my ($database, $role) = @_;

    return map { [ split /\|/ ] } split /\n/, $node->safe_psql($database, qq{
        SELECT privilege_type, 'SCHEMA inbox' FROM pg_namespace, aclexplode(nspacl)
         WHERE nspname = 'inbox' AND grantee = '$role'::regrole
        UNION ALL
        SELECT privilege_type, CASE relkind WHEN 'S' THEN 'SEQUENCE ' ELSE 'TABLE ' END || oid::regclass
          FROM pg_class, aclexplode(relacl)
         WHERE relnamespace = 'inbox'::regnamespace AND grantee = '$role'::regrole
        UNION ALL
        SELECT format('%s (%I)', privilege_type, attname), 'TABLE ' || attrelid::regclass
          FROM pg_attribute, aclexplode(attacl)
         WHERE grantee = '$role'::regrole
         ORDER BY 2, 1});
}

# none
foreach my $call (sort keys %calls)
{
    like(error_of('nobody_in_particular', $call),
        qr/ERROR:  42P01: there is no inbox.*that you may use/s, "without any privilege: $call");
}
$node->safe_psql($_, 'GRANT USAGE ON SCHEMA inbox TO nobody_in_particular') foreach qw(postgres housekeeping);
foreach my $call (sort keys %calls)
{
    like(error_of('nobody_in_particular', $call),
        qr/ERROR:  42501: permission denied for (table|sequence) \w+/,
        "with nothing but USAGE on the schema: $call");
}
is( $node->safe_psql('postgres', q{
        SELECT count(*) FROM pg_class, aclexplode(relacl)
         WHERE relnamespace = 'inbox'::regnamespace AND grantee = 0}) .
    $node->safe_psql('postgres', q{
        SELECT count(*) FROM pg_namespace, aclexplode(nspacl) WHERE nspname = 'inbox' AND grantee = 0}),
    '00', 'PUBLIC has no rights on an inbox');

# each privilege
foreach my $role (@privileges)
{
    $node->safe_psql($_, "SET search_path = inbox; SELECT seqinbox_grant('$role', '$role')")
      foreach qw(postgres housekeeping);
    foreach my $call (sort keys %calls)
    {
        if (may($role, $call))
        {
            is(error_of($role, $call), 'no error', "$role: $call");
        }
        else
        {
            like(error_of($role, $call), qr/ERROR:  42501: permission denied for \w+ \w+/,
                "$role: not $call");
        }
    }
}

# an observer sees no payload, neither of waiting messages nor of dead letters
foreach my $table (qw(buffered_message message_header))
{
    like(sql_error($node, "SET SESSION AUTHORIZATION observer; SELECT * FROM inbox.$table"),
        qr/42501: permission denied for table $table/, "observer: not $table");
}
foreach my $column (qw(message_value message_key header_names header_values))
{
    like(sql_error($node, "SET SESSION AUTHORIZATION observer; SELECT $column FROM inbox.dead_letter"),
        qr/42501: permission denied for table dead_letter/, "observer: not $column of dead letters");
}
is( sql_error($node, q{SET SESSION AUTHORIZATION observer;
        SELECT id, sequence_name, context_id, message_type, idempotence_id, last_error, reason FROM inbox.dead_letter}),
    'no error', 'observer: why there are dead letters');

# a consumer cannot change how long anything is kept
like(sql_error($node, "SET SESSION AUTHORIZATION consumer; UPDATE inbox.sequence_instance SET $_ = now()"),
    qr/42501: permission denied for table sequence_instance/, "consumer: cannot set $_")
  foreach qw(retain_until remove_after created_at);
is(sql_error($node, 'BEGIN; SET LOCAL SESSION AUTHORIZATION operator; UPDATE inbox.sequence_instance
        SET retain_until = retain_until; ROLLBACK'),
    'no error', 'operator: can extend the retention');

# nothing is granted that is not needed
foreach my $role (@privileges)
{
    foreach my $grant (grants_of('postgres', $role))
    {
        my ($privilege, $object) = @$grant;

        # to extend an instance's retention, and to look at dead letters, takes
        # a statement of one's own
        next if $role eq 'observer' && $object eq 'TABLE inbox.dead_letter';
        $node->safe_psql($_, "REVOKE $privilege ON $object FROM $role") foreach qw(postgres housekeeping);
        my @refused = grep { error_of($role, $_) ne 'no error' } grep { may($role, $_) } sort keys %calls;
        isnt("@refused", '', "$role needs $privilege on $object");
        note("for $_") foreach @refused;
        $node->safe_psql($_, "GRANT $privilege ON $object TO $role") foreach qw(postgres housekeeping);
    }
}

$session->quit;
$housekeeping->quit;
done_testing();
