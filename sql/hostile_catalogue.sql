-- A schema ahead in search_path has a trap for each function, operator, type and
-- relation of pg_catalog that can have one: of the same name and for the same
-- arguments. None of the extension's functions walks into any of them.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
\set ECHO none
\i test/every_function.sql
\set ECHO all
\set SHOW_CONTEXT never
SELECT seqinbox_create_inbox('hostile_catalogue');
CREATE SCHEMA traps;

CREATE TABLE traps.made (kind text, name text);
CREATE FUNCTION traps.trap() RETURNS int LANGUAGE plpgsql AS 'BEGIN RAISE ''trapped''; END';
-- makes a trap, if the server lets it be made
CREATE FUNCTION traps.make(kind text, name text, VARIADIC commands text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    command text;
BEGIN
    FOREACH command IN ARRAY commands LOOP
        EXECUTE command;
    END LOOP;
    INSERT INTO traps.made VALUES (kind, name);
EXCEPTION WHEN syntax_error_or_access_rule_violation OR feature_not_supported THEN
    NULL;
END
$$;
CREATE FUNCTION traps.type(type oid) RETURNS text LANGUAGE sql AS
    'SELECT format(''pg_catalog.%I'', typname) FROM pg_type WHERE pg_type.oid = type';
SET check_function_bodies = off;

SELECT count(traps.make('function', p.proname, format(
           'CREATE FUNCTION traps.%I(%s) RETURNS %s%s LANGUAGE plpgsql AS ''BEGIN RAISE ''''trapped''''; END''',
           p.proname, a.types, CASE WHEN p.proretset THEN 'SETOF ' END, traps.type(p.prorettype)))) > 0 AS functions
  FROM pg_proc p
 CROSS JOIN LATERAL (SELECT string_agg(traps.type(t), ', ' ORDER BY n) AS types
                       FROM unnest(p.proargtypes) WITH ORDINALITY AS a (t, n)) AS a
 WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname <> 'trap';
SELECT count(traps.make('operator', o.oprname,
           format('CREATE FUNCTION traps.operator_%s(%s) RETURNS %s LANGUAGE plpgsql'
                  ' AS ''BEGIN RAISE ''''trapped''''; END''', o.oid,
                  concat_ws(', ', traps.type(o.oprleft), traps.type(o.oprright)), traps.type(o.oprresult)),
           format('CREATE OPERATOR traps.%s (FUNCTION = traps.operator_%s, %s)', o.oprname, o.oid,
                  concat_ws(', ', 'LEFTARG = ' || traps.type(o.oprleft), 'RIGHTARG = ' || traps.type(o.oprright))))) > 0
       AS operators
  FROM pg_operator o
 WHERE o.oprnamespace = 'pg_catalog'::regnamespace;
SELECT count(traps.make('type', t.typname,
           format('CREATE DOMAIN traps.%I AS pg_catalog.%1$I CHECK (traps.trap() > 0)', t.typname))) > 0 AS types
  FROM pg_type t
 WHERE t.typnamespace = 'pg_catalog'::regnamespace AND t.typtype = 'b' AND t.typelem = 0;
SELECT count(traps.make('relation', c.relname,
           format('CREATE VIEW traps.%I AS SELECT traps.trap() AS oid', c.relname))) > 0 AS relations
  FROM pg_class c
 WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind IN ('r', 'v');
SELECT kind, count(*) > 60 AS many FROM traps.made GROUP BY kind ORDER BY kind;

-- the traps work
SET search_path = traps, hostile_catalogue, pg_catalog;
SELECT 1::int8 = 1::int8;
SELECT lower('A'::pg_catalog.text);
SELECT max(id) FROM hostile_catalogue.sequence_instance;
SELECT 'a'::text;
SELECT oid FROM pg_class;
SELECT seqinbox_version();
RESET search_path;

-- nobody is caught
SELECT * FROM every_function.not_called;
SELECT function, result
  FROM every_function.call_all('hostile_catalogue', 'hostile_catalogue', 'N', 'B.N', 'first', current_user,
                               every_function.document('N'));
SELECT function, result
  FROM every_function.call_all('hostile_catalogue', 'traps, hostile_catalogue, pg_catalog', 'N', 'B.N', 'second',
                               current_user, every_function.document('N'));
\c -
-- nor in a session that begins like this
SET client_min_messages = warning;
\set SHOW_CONTEXT never
SELECT pg_catalog.count(*)
  FROM every_function.call_all('hostile_catalogue', 'traps, hostile_catalogue, pg_catalog', 'N', 'B.N', 'third',
                               current_user, every_function.document('N'));
-- the procedure has something to do
INSERT INTO hostile_catalogue.sequence_instance (name, context_id, state, created_at, retain_until)
SELECT 'N', 'expired ' || n, CASE n WHEN 1 THEN 'OPEN' ELSE 'CLOSED' END, now() - interval '9 days',
       now() - interval '2 days'
  FROM generate_series(1, 2) AS n;
INSERT INTO hostile_catalogue.sequenced_message (message_type, cluster_name, topic, sequenced_message_id,
                                                 idempotence_id, state, created_at, sequence_instance_id)
SELECT 'N', '', '', gen_random_uuid(), 'expired', 'FAILED', now() - interval '9 days', id
  FROM hostile_catalogue.sequence_instance WHERE context_id = 'expired 1';
DELETE FROM hostile_catalogue.sequence_instance WHERE context_id LIKE '20%/%';
SET search_path = traps, hostile_catalogue, pg_catalog;
CALL pg_catalog.seqinbox_housekeeping(keep_dead_letters => '0');
RESET search_path;

DROP SCHEMA traps, hostile_catalogue, every_function CASCADE;
