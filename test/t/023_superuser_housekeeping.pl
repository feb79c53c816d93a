# A superuser who calls the housekeeping in an inbox of another role: the code
# that the owner has attached to the tables runs as the owner, and finds no way
# back. What it would do with the superuser's rights is shown by a statement of
# the superuser's own.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxSql;
use SeqinboxTest;

my $node = new_node('main');
my $superuser = $node->safe_psql('postgres', 'SELECT current_user');

sub as
{
    my ($role, $sql) = @_;

    return $node->safe_psql('postgres', $sql, extra_params => [ '-U', $role ]);
}

sub is_superuser
{
    return $node->safe_psql('postgres', q{SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'});
}

$node->safe_psql('postgres', q{
    CREATE EXTENSION seqinbox;
    CREATE ROLE mallory LOGIN;
    CREATE SCHEMA mallory AUTHORIZATION mallory;
    CREATE SCHEMA mixed AUTHORIZATION mallory;
    CREATE SCHEMA deferred AUTHORIZATION mallory});

# What she attaches to a table; each tries to come to more rights.
as('mallory', qq{
    SET client_min_messages = warning;
    SELECT seqinbox_create_inbox('mallory'), seqinbox_create_inbox('deferred');
    SET search_path = mallory;
    CREATE TABLE seen (place text, who name, superuser boolean);
    CREATE FUNCTION attack(place text) RETURNS boolean LANGUAGE plpgsql AS \$\$
    DECLARE
        attempt text;
    BEGIN
        FOREACH attempt IN ARRAY ARRAY['RESET ROLE', 'SET ROLE "$superuser"', 'RESET SESSION AUTHORIZATION',
            'SET LOCAL SESSION AUTHORIZATION "$superuser"', 'ALTER ROLE mallory SUPERUSER'] LOOP
            BEGIN
                EXECUTE attempt;
            EXCEPTION WHEN OTHERS THEN
                NULL;
            END;
        END LOOP;
        SET search_path = mallory, pg_catalog;
        INSERT INTO mallory.seen SELECT place, current_user, rolsuper FROM pg_roles WHERE rolname = current_user;
        RETURN true;
    END \$\$;
    CREATE FUNCTION attack_by_trigger() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM mallory.attack(TG_NAME); RETURN CASE TG_OP WHEN ''DELETE'' THEN OLD ELSE NEW END; END';
    CREATE TRIGGER before_insert BEFORE INSERT ON sequence_instance
        FOR EACH ROW EXECUTE FUNCTION attack_by_trigger();
    CREATE TRIGGER before_delete BEFORE DELETE ON sequence_instance
        FOR EACH ROW EXECUTE FUNCTION attack_by_trigger();
    CREATE TRIGGER after_update AFTER UPDATE ON sequence_instance
        FOR EACH STATEMENT EXECUTE FUNCTION attack_by_trigger();
    CREATE RULE rule AS ON DELETE TO sequenced_message DO ALSO SELECT mallory.attack('rule');
    ALTER TABLE dead_letter ADD CONSTRAINT checked CHECK (mallory.attack('check'));
    CREATE CONSTRAINT TRIGGER deferred AFTER DELETE ON deferred.sequence_instance DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION attack_by_trigger()});
my @places = qw(after_update before_delete before_insert check rule);

# what is to be made, marked and removed; what she attached changes search_path
sub prepare
{
    my ($schema) = @_;

    as('mallory', qq{
        DELETE FROM $schema.sequence_instance WHERE name = 'seqinbox.idempotence';
        INSERT INTO $schema.sequence_instance (name, context_id, state, created_at, retain_until, remove_after)
        VALUES ('Orders', 'removed', 'OPEN', '2000-01-01', '2000-01-02', '2000-01-02'),
               ('Orders', 'marked', 'OPEN', now() - interval '1 day', now(), NULL);
        SET search_path = $schema;
        SELECT seqinbox_store('A', 'a-1', id, 'WAITING', 'v') FROM sequence_instance WHERE context_id = 'removed'});
    $node->safe_psql('postgres', 'TRUNCATE mallory.seen');
    return;
}

prepare('mallory');
is(sql_error($node, 'SET search_path = mallory; CALL seqinbox_housekeeping()'),
    'no error', 'a superuser cleans the inbox of another role');
is($node->safe_psql('postgres', q{SELECT count(*) FROM mallory.sequence_instance WHERE context_id = 'removed'}),
    0, 'it is cleaned');
is($node->safe_psql('postgres', q{SELECT count(*) FROM mallory.dead_letter}), 1, 'a dead letter is made');
is($node->safe_psql('postgres', 'SELECT string_agg(DISTINCT place, $$ $$ ORDER BY place) FROM mallory.seen'),
    "@places", 'all that she attached has run');
is($node->safe_psql('postgres', 'SELECT DISTINCT who, superuser FROM mallory.seen'), 'mallory|f', 'as herself');
is(is_superuser(), 'f', 'she has not become a superuser');
is( $node->safe_psql('postgres', q{
        SET search_path = mallory; CALL seqinbox_housekeeping(); SELECT current_user, session_user}) =~ s/.*\n//r,
    "$superuser|$superuser", 'the session is as before');
prepare('mallory');
is((split /\n/, $node->safe_psql('postgres', q{
        SET search_path = public, mallory; CALL seqinbox_housekeeping(); SHOW search_path}))[-1],
    'public, mallory', 'and so are its settings');

# as any other role, the caller acts as itself
as('mallory', 'GRANT USAGE ON SCHEMA mallory TO PUBLIC; GRANT INSERT ON mallory.seen TO PUBLIC');
$node->safe_psql('postgres', 'CREATE ROLE operator LOGIN');
as('mallory', q{SET search_path = mallory; SELECT seqinbox_grant('operator', 'operator')});
prepare('mallory');
as('operator', 'SET search_path = mallory; CALL seqinbox_housekeeping()');
is($node->safe_psql('postgres', q{SELECT DISTINCT who FROM mallory.seen}), 'operator', 'an operator acts as such');

# what is put off until the commit, where the superuser is back
prepare('deferred');
like(sql_error($node, 'SET search_path = deferred; CALL seqinbox_housekeeping()'),
    qr/42501: cannot fire deferred trigger within security-restricted operation/, 'nothing is deferred');
is($node->safe_psql('postgres', 'SELECT count(*) FROM mallory.seen'), 0, 'and does not run');

# two owners: acting as the owner of the claim table would not be enough
$node->safe_psql('postgres', q{SET client_min_messages = warning; SELECT seqinbox_create_inbox('mixed')});
as('mallory', q{
    SET client_min_messages = warning;
    SET search_path = mixed;
    DROP TABLE sequence_instance CASCADE;
    CREATE TABLE sequence_instance (LIKE mallory.sequence_instance INCLUDING DEFAULTS INCLUDING INDEXES);
    CREATE TRIGGER mixed BEFORE INSERT ON sequence_instance FOR EACH ROW EXECUTE FUNCTION mallory.attack_by_trigger()});
like(sql_error($node, 'SET search_path = mixed; CALL seqinbox_housekeeping()'),
    qr/42501: housekeeping passes over inbox "mixed"/, 'an inbox of two owners is refused');
is($node->safe_psql('postgres', 'SELECT count(*) FROM mallory.seen'), 0, 'her code does not run');

# the attack works where nobody acts as the owner
prepare('mallory');
$node->safe_psql('postgres', q{
    DELETE FROM mallory.sequence_instance WHERE context_id = 'marked'});
is($node->safe_psql('postgres', q{SELECT DISTINCT superuser FROM mallory.seen}), 't',
    q{a superuser's own statement runs her code as superuser});
is(is_superuser(), 't', 'and makes her one');

done_testing();
