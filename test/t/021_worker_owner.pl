# The background worker is a superuser's process, but what is attached to an
# inbox's tables is their owner's code. So it must run as the owner, and nothing
# that the owner can do may lead back to the superuser, or to another owner.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxSql;
use SeqinboxTest;

# the worker begins when all is prepared
my $node = new_node('main', conf => q{
    shared_preload_libraries = 'seqinbox'
    seqinbox.housekeeping_interval = '1s'
});
my $superuser = $node->safe_psql('postgres', 'SELECT current_user');

# In a session of the role's own, from which there is no way to the superuser.
sub as
{
    my ($role, $sql) = @_;

    return $node->safe_psql('postgres', $sql, extra_params => [ '-U', $role ]);
}

$node->safe_psql('postgres', qq{
    CREATE EXTENSION seqinbox;
    CREATE ROLE mallory LOGIN;
    CREATE ROLE victim LOGIN;
    CREATE SCHEMA mallory AUTHORIZATION mallory;
    CREATE SCHEMA victim AUTHORIZATION victim;
    CREATE SCHEMA deferred AUTHORIZATION mallory;
    CREATE SCHEMA deferring AUTHORIZATION mallory;
    CREATE SCHEMA mixed AUTHORIZATION mallory;
    CREATE SCHEMA spoiler AUTHORIZATION mallory;
    CREATE SCHEMA innocent AUTHORIZATION victim;
    GRANT ALL ON SCHEMA public TO mallory;
    GRANT USAGE ON SCHEMA mallory TO PUBLIC});

# What mallory tries wherever the worker comes to her code: each attempt by
# itself, and what became of it.
as('mallory', q{
    SET search_path = mallory;
    CREATE TABLE attempt (place text, sql text, result text, who name, superuser boolean);
    CREATE TABLE ready ();
    CREATE TABLE called (name text, who name);
    CREATE TABLE spied (what text, who name);
    GRANT INSERT ON called, spied TO PUBLIC;

    SET check_function_bodies = off;
    CREATE FUNCTION as_superuser() RETURNS void LANGUAGE sql SET role = 'SUPERUSER' AS
        'ALTER ROLE mallory SUPERUSER';
    CREATE FUNCTION as_superuser_session() RETURNS void LANGUAGE sql SET session_authorization = 'SUPERUSER' AS
        'ALTER ROLE mallory SUPERUSER';
    RESET check_function_bodies;

    CREATE FUNCTION attack(place text) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
        attempts text[] = ARRAY[
            'ALTER ROLE mallory SUPERUSER',
            'CREATE ROLE accomplice SUPERUSER',
            'GRANT pg_execute_server_program TO mallory',
            'GRANT victim TO mallory',
            'SET ROLE "SUPERUSER"',
            'SET LOCAL ROLE "SUPERUSER"',
            'SET ROLE victim',
            'RESET ROLE',
            'SET SESSION AUTHORIZATION "SUPERUSER"',
            'SET LOCAL SESSION AUTHORIZATION "SUPERUSER"',
            'SET SESSION AUTHORIZATION victim',
            'RESET SESSION AUTHORIZATION',
            'SET SESSION AUTHORIZATION DEFAULT',
            'SELECT set_config(''role'', ''SUPERUSER'', false)',
            'SELECT set_config(''role'', ''none'', false)',
            'SELECT set_config(''session_authorization'', ''SUPERUSER'', false)',
            'SELECT mallory.as_superuser()',
            'SELECT mallory.as_superuser_session()',
            'CREATE FUNCTION pg_catalog.lower(name) RETURNS text LANGUAGE sql AS ''SELECT NULL::text''',
            'CREATE TABLE pg_catalog.gift ()',
            'SELECT rolpassword FROM pg_authid',
            'UPDATE pg_authid SET rolsuper = true',
            'SELECT * FROM victim.secret',
            'SELECT pg_read_file(''postgresql.conf'')',
            'COPY mallory.attempt TO PROGRAM ''cat > /dev/null''',
            'ALTER SYSTEM SET seqinbox.housekeeping_databases = ''''',
            'SET session_replication_role = replica',
            'SET session_preload_libraries = ''mallory''',
            'CREATE EVENT TRIGGER gift ON ddl_command_start EXECUTE FUNCTION mallory.run_attack()',
            'SELECT lo_export(0, ''gift'')',
            'CREATE TEMPORARY TABLE sequence_instance (id int)',
            'DECLARE gift CURSOR WITH HOLD FOR SELECT 1',
            'PREPARE gift AS SELECT 1',
            'LISTEN gift'];
        attempt text;
    BEGIN
        -- not while all this is prepared
        IF NOT EXISTS (SELECT FROM mallory.ready) THEN
            RETURN;
        END IF;
        FOREACH attempt IN ARRAY attempts LOOP
            BEGIN
                EXECUTE attempt;
                INSERT INTO mallory.attempt VALUES (place, attempt, 'done', current_user);
            EXCEPTION WHEN OTHERS THEN
                INSERT INTO mallory.attempt VALUES (place, attempt, SQLSTATE || ' ' || SQLERRM, current_user);
            END;
        END LOOP;
        INSERT INTO mallory.attempt
        SELECT place, 'nothing', 'done', current_user, rolsuper FROM pg_roles WHERE rolname = current_user;
    END $$;
    CREATE FUNCTION run_attack() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM mallory.attack(TG_NAME);
        RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
    END $$;
    CREATE FUNCTION attack_from(place text, value text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM mallory.attack(place);
        RETURN value;
    END $$} =~ s/SUPERUSER(?=['"])/$superuser/gr);

# Her inbox, with that attached to its tables: what is to be removed, marked and
# made when the worker comes.
my $attach = q{
    INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until, remove_after)
    VALUES (1000, 'Orders', 'removed', 'OPEN', '2000-01-01', '2000-01-02', '2000-01-02'),
           (1001, 'Orders', 'marked', 'OPEN', now() - interval '1 day', now(), NULL);
    INSERT INTO sequential_inbox_idempotence VALUES ('A', 'a-1', 1000, '2000-01-01');
    SELECT seqinbox_store('A', 'a-1', 1000, 'WAITING', 'v', 'k', '{h}', '{v}'),
           seqinbox_store('A', 'a-2', 1001, 'WAITING', 'v');
    CREATE TRIGGER before_delete BEFORE DELETE ON sequence_instance
        FOR EACH ROW EXECUTE FUNCTION mallory.run_attack();
    CREATE TRIGGER after_delete AFTER DELETE ON message_header
        FOR EACH ROW EXECUTE FUNCTION mallory.run_attack();
    CREATE TRIGGER after_statement AFTER DELETE ON sequential_inbox_idempotence
        FOR EACH STATEMENT EXECUTE FUNCTION mallory.run_attack();
    CREATE CONSTRAINT TRIGGER constraint_trigger AFTER UPDATE ON sequence_instance DEFERRABLE
        FOR EACH ROW WHEN (NEW.remove_after IS NOT NULL) EXECUTE FUNCTION mallory.run_attack();
    CREATE RULE rule AS ON DELETE TO buffered_message DO ALSO SELECT mallory.attack('rule');
    CREATE DOMAIN mallory.reason AS text CHECK (mallory.attack_from('domain', VALUE) IS NOT NULL);
    ALTER TABLE dead_letter ALTER reason TYPE mallory.reason;
    CREATE TABLE child () INHERITS (sequence_instance);
    CREATE TRIGGER child BEFORE DELETE ON child FOR EACH ROW EXECUTE FUNCTION mallory.run_attack();
    INSERT INTO child (id, name, context_id, state, created_at, retain_until, remove_after)
    VALUES (1002, 'Orders', 'removed', 'OPEN', '2000-01-01', '2000-01-02', '2000-01-02');
    ALTER TABLE message_header RENAME TO header_table;
    CREATE VIEW message_header AS SELECT * FROM header_table;
    CREATE FUNCTION mallory.delete_header() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM mallory.attack('view');
        DELETE FROM mallory.header_table WHERE id = OLD.id;
        RETURN OLD;
    END $$;
    CREATE TRIGGER view INSTEAD OF DELETE ON message_header FOR EACH ROW EXECUTE FUNCTION mallory.delete_header();
    ALTER TABLE dead_letter ADD CONSTRAINT checked
        CHECK (mallory.attack_from('check', reason) IS NOT NULL) NOT VALID;
    CREATE INDEX ON dead_letter (mallory.attack_from('index', reason));
    CREATE INDEX ON dead_letter (id) WHERE mallory.attack_from('index predicate', reason) <> '';
    ALTER TABLE dead_letter ADD given text DEFAULT mallory.attack_from('default', 'x');
    ALTER TABLE dead_letter ADD made text GENERATED ALWAYS AS (mallory.attack_from('generated', reason)) STORED;
    CREATE FUNCTION mallory.sees(id bigint) RETURNS boolean LANGUAGE plpgsql AS
        'BEGIN IF id = 1001 THEN PERFORM mallory.attack(''policy''); END IF; RETURN true; END';
    CREATE POLICY seen ON sequence_instance USING (mallory.sees(id));
    ALTER TABLE sequence_instance ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY};
my @places = ('before_delete', 'after_delete', 'after_statement', 'constraint_trigger', 'check', 'index',
    'index predicate', 'default', 'generated', 'policy', 'rule', 'domain', 'child', 'view');
as('mallory', qq{
    SET client_min_messages = warning;
    SELECT seqinbox_create_inbox('mallory');
    SET search_path = mallory;
    $attach});

# What is put off until the commit could find the superuser again. Two more
# inboxes of hers: with a trigger that is deferred from the start, and with one
# that another trigger defers.
as('mallory', qq{
    SET client_min_messages = warning;
    SELECT seqinbox_create_inbox('$_');
    SET search_path = $_;
    INSERT INTO sequence_instance (name, context_id, state, created_at, retain_until)
    VALUES ('Orders', 'removed', 'CLOSED', '2000-01-01', '2000-01-02');
    CREATE FUNCTION defer() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN SET CONSTRAINTS ALL DEFERRED; RETURN OLD; END';
    CREATE TRIGGER defer BEFORE DELETE ON sequence_instance FOR EACH ROW EXECUTE FUNCTION defer();
    CREATE CONSTRAINT TRIGGER $_ AFTER DELETE ON sequence_instance
        DEFERRABLE INITIALLY } . ($_ eq 'deferred' ? 'DEFERRED' : 'IMMEDIATE') . q{
        FOR EACH ROW EXECUTE FUNCTION mallory.run_attack()})
  foreach qw(deferred deferring);

# Functions and operators that the worker's statements would call, if it looked
# for them where she can make some.
as('mallory', qq{
    CREATE FUNCTION $_.less(timestamptz, timestamptz) RETURNS boolean LANGUAGE plpgsql AS
        'BEGIN INSERT INTO mallory.called VALUES (''<='', current_user); RETURN true; END';
    CREATE OPERATOR $_.<= (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = $_.less);
    CREATE FUNCTION $_.same(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS
        'BEGIN INSERT INTO mallory.called VALUES (''='', current_user); RETURN true; END';
    CREATE OPERATOR $_.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = $_.same);
    CREATE FUNCTION $_.array_agg(bigint) RETURNS bigint[] LANGUAGE plpgsql AS
        'BEGIN INSERT INTO mallory.called VALUES (''array_agg'', current_user); RETURN NULL; END';
    CREATE FUNCTION $_.unnest(text[]) RETURNS SETOF text LANGUAGE plpgsql AS
        'BEGIN INSERT INTO mallory.called VALUES (''unnest'', current_user); END';
    CREATE FUNCTION $_.nextval(text) RETURNS bigint LANGUAGE plpgsql AS
        'BEGIN INSERT INTO mallory.called VALUES (''nextval'', current_user); RETURN 1; END'})
  foreach qw(mallory public);

# Innocent inboxes that come after hers. A trigger there calls a function without
# its schema, as many do, and notes what it finds. She has one of that name, and
# changes settings each time that the worker comes: some of which may go
# unnoticed, and in another inbox some that stop all work.
as('mallory', q{
    CREATE FUNCTION mallory.note(text) RETURNS void LANGUAGE plpgsql AS
        'BEGIN INSERT INTO mallory.spied VALUES ($1, current_user); END';
    GRANT EXECUTE ON FUNCTION mallory.note TO PUBLIC;
    CREATE FUNCTION mallory.divert() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        SET search_path = mallory, pg_catalog;
        SET lock_timeout = '1min';
        SET DateStyle = 'SQL, DMY';
        RETURN NULL;
    END $$;
    CREATE TRIGGER divert AFTER INSERT ON mallory.sequence_instance
        FOR EACH STATEMENT EXECUTE FUNCTION mallory.divert()});
as('victim', q{
    SET client_min_messages = warning;
    SELECT seqinbox_create_inbox('victim');
    SET search_path = victim;
    CREATE TABLE secret (secret text);
    CREATE TABLE noted (who name, path text, lock_timeout text, date_style text);
    CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        BEGIN
            PERFORM note(OLD.context_id);
        EXCEPTION WHEN undefined_function THEN
            NULL;
        END;
        INSERT INTO victim.noted
        VALUES (current_user, current_setting('search_path'), current_setting('lock_timeout'),
            current_setting('datestyle'));
        RETURN OLD;
    END $$;
    CREATE TRIGGER watch BEFORE DELETE ON sequence_instance FOR EACH ROW EXECUTE FUNCTION watch();
    INSERT INTO sequence_instance (name, context_id, state, created_at, retain_until)
    VALUES ('Orders', 'removed', 'CLOSED', '2000-01-01', '2000-01-02')});
as('mallory', q{
    SET client_min_messages = warning;
    SELECT seqinbox_create_inbox('spoiler');
    CREATE FUNCTION spoiler.spoil() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        SET default_transaction_read_only = on;
        RETURN NULL;
    END $$;
    CREATE TRIGGER spoil AFTER INSERT ON spoiler.sequence_instance
        FOR EACH STATEMENT EXECUTE FUNCTION spoiler.spoil()});
as('victim', q{
    SET client_min_messages = warning;
    SELECT seqinbox_create_inbox('innocent');
    INSERT INTO innocent.sequence_instance (name, context_id, state, created_at, retain_until)
    VALUES ('Orders', 'removed', 'CLOSED', '2000-01-01', '2000-01-02')});

# An inbox that the superuser made in a schema of hers, so that she could put a
# table of her own into it.
$node->safe_psql('postgres', q{
    SET client_min_messages = warning;
    SELECT seqinbox_create_inbox('mixed')});
as('mallory', q{
    SET client_min_messages = warning;
    SET search_path = mixed;
    DROP TABLE sequence_instance CASCADE;
    CREATE TABLE sequence_instance (LIKE mallory.sequence_instance INCLUDING DEFAULTS INCLUDING INDEXES);
    CREATE FUNCTION take_over() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO mallory.spied VALUES ('mixed', current_user);
        ALTER ROLE mallory SUPERUSER;
        RETURN NEW;
    EXCEPTION WHEN insufficient_privilege THEN
        RETURN NEW;
    END $$;
    CREATE TRIGGER take_over BEFORE INSERT ON sequence_instance FOR EACH ROW EXECUTE FUNCTION take_over()});

as('mallory', 'INSERT INTO mallory.ready DEFAULT VALUES');
my $log = -s $node->logfile;
$node->append_conf('postgresql.conf', q{seqinbox.housekeeping_databases = 'postgres'});
$node->reload;

# Does she get anywhere?
foreach my $schema (qw(mallory victim innocent))
{
    ok($node->poll_query_until('postgres',
            "SELECT NOT EXISTS (SELECT FROM $schema.sequence_instance WHERE context_id = 'removed')"),
        "$schema: cleaned");
}

foreach my $place (@places)
{
    is( $node->safe_psql('postgres', qq{
            SELECT DISTINCT who, superuser FROM mallory.attempt WHERE place = '$place' AND sql = 'nothing'}),
        'mallory|f', "$place: runs as the owner");
    is( $node->safe_psql('postgres', qq{
            SELECT DISTINCT sql, result FROM mallory.attempt
             WHERE place = '$place' AND sql <> 'nothing' AND result = 'done'}),
        '', "$place: no attempt succeeds");
}
cmp_ok($node->safe_psql('postgres', q{SELECT count(DISTINCT sql) FROM mallory.attempt}), '==', 35,
    'all of them were tried');
is( $node->safe_psql('postgres', q{
        SELECT sql, result FROM mallory.attempt
         WHERE sql ~ 'ROLE|AUTHORIZATION|set_config|as_super' AND sql !~ '^(ALTER|CREATE)'
           AND result !~ '^42501 cannot set parameter "(role|session_authorization)" within security-restricted operation'}),
    '', 'there is no way back to the session user');
is($node->safe_psql('postgres', 'SELECT DISTINCT name, who FROM mallory.called'), '',
    'no function or operator of the owner is taken for one of the system');

# what is deferred does not run at all
foreach my $schema (qw(deferred deferring))
{
    is($node->safe_psql('postgres', "SELECT DISTINCT who FROM mallory.attempt WHERE place = '$schema'"), '',
        "$schema: does not run");
    is($node->safe_psql('postgres', "SELECT count(*) FROM $schema.sequence_instance WHERE context_id = 'removed'"), 1,
        "$schema: so nothing is removed");
}
ok($node->log_contains(qr/ERROR:  cannot fire deferred trigger within .*\n.*"DELETE FROM $_\./, $log),
    "$_: is logged")
  foreach qw(deferred deferring);

# her settings end with her turn
is($node->safe_psql('postgres', 'SELECT * FROM victim.noted'), 'victim|pg_catalog, pg_temp|10s|ISO, MDY',
    q{another owner's triggers find the settings as they should be});
is($node->safe_psql('postgres', q{SELECT * FROM mallory.spied WHERE what <> 'mixed'}), '',
    q{and do not call what the first owner made for them});

# two owners in one inbox
is($node->safe_psql('postgres', q{SELECT DISTINCT who FROM mallory.spied WHERE what = 'mixed' AND who <> 'mallory'}), '',
    q{what another role put into a superuser's inbox does not run as the superuser});
is($node->safe_psql('postgres', q{SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'}), 'f',
    'she has not become a superuser');

done_testing();
