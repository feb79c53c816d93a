-- Nothing along the caller's search_path gets between a function of this
-- extension and what it means: operators, functions, types and relations that
-- bear the names that it uses raise an error when they are used.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('hostile_inbox');
CREATE SCHEMA hostile;
RESET client_min_messages;
\set SHOW_CONTEXT never

-- operators: comparison, arithmetic and concatenation of every type in use
DO $$
DECLARE
    type text;
    operator text;
BEGIN
    FOREACH type IN ARRAY ARRAY['text', 'name', 'bigint', 'integer', 'boolean', 'timestamptz',
                                'interval', 'uuid', 'bytea', 'jsonb', 'anyelement', 'anyarray'] LOOP
        EXECUTE format('CREATE FUNCTION hostile.compare(%1$s, %1$s) RETURNS boolean'
                       ' LANGUAGE plpgsql AS ''BEGIN RAISE ''''trapped''''; END''', type);
        FOREACH operator IN ARRAY ARRAY['=', '<>', '<', '<=', '>', '>='] LOOP
            EXECUTE format('CREATE OPERATOR hostile.%s (PROCEDURE = hostile.compare,'
                           ' LEFTARG = %s, RIGHTARG = %2$s)', operator, type);
        END LOOP;
        EXECUTE format('CREATE FUNCTION hostile.combine(%1$s, %1$s) RETURNS %1$s'
                       ' LANGUAGE plpgsql AS ''BEGIN RAISE ''''trapped''''; END''', type);
        FOREACH operator IN ARRAY ARRAY['+', '-', '||'] LOOP
            EXECUTE format('CREATE OPERATOR hostile.%s (PROCEDURE = hostile.combine,'
                           ' LEFTARG = %s, RIGHTARG = %2$s)', operator, type);
        END LOOP;
    END LOOP;
END
$$;
CREATE FUNCTION hostile.later(timestamptz, interval) RETURNS timestamptz
LANGUAGE plpgsql AS 'BEGIN RAISE ''trapped''; END';
CREATE OPERATOR hostile.+ (PROCEDURE = hostile.later, LEFTARG = timestamptz, RIGHTARG = interval);
CREATE OPERATOR hostile.- (PROCEDURE = hostile.later, LEFTARG = timestamptz, RIGHTARG = interval);

-- functions, the extension's own among them
DO $$
DECLARE
    signature text;
BEGIN
    FOREACH signature IN ARRAY ARRAY[
        'now() RETURNS timestamptz', 'clock_timestamp() RETURNS timestamptz',
        'gen_random_uuid() RETURNS uuid', 'current_schema() RETURNS name',
        'nextval(regclass) RETURNS bigint', 'nextval(text) RETURNS bigint',
        'unnest(anyarray) RETURNS SETOF anyelement', 'unnest(text[]) RETURNS SETOF text',
        'unnest(bytea[]) RETURNS SETOF bytea', 'unnest(timestamptz[]) RETURNS SETOF timestamptz',
        'seqinbox_claim(text, text, bigint) RETURNS boolean',
        'seqinbox_open_instance(text, text, interval) RETURNS bigint'] LOOP
        EXECUTE format('CREATE FUNCTION hostile.%s LANGUAGE plpgsql'
                       ' AS ''BEGIN RAISE ''''trapped''''; END''', signature);
    END LOOP;
END
$$;
CREATE AGGREGATE hostile.max(bigint) (SFUNC = hostile.combine, STYPE = bigint, INITCOND = 0);

-- relations
CREATE FUNCTION hostile.trap() RETURNS integer LANGUAGE plpgsql AS 'BEGIN RAISE ''trapped''; END';
CREATE VIEW hostile.sequence_instance AS SELECT hostile.trap() AS id;
CREATE VIEW hostile.sequenced_message AS SELECT hostile.trap() AS id;
CREATE VIEW hostile.sequential_inbox_idempotence AS SELECT hostile.trap() AS id;
CREATE VIEW hostile.buffered_message AS SELECT hostile.trap() AS id;
CREATE VIEW hostile.message_header AS SELECT hostile.trap() AS id;
CREATE VIEW hostile.sequence_declaration AS SELECT hostile.trap() AS id;
CREATE VIEW hostile.message_type_declaration AS SELECT hostile.trap() AS id;
CREATE SEQUENCE hostile.sequence_instance_sequence;
CREATE SEQUENCE hostile.sequenced_message_sequence;
CREATE SEQUENCE hostile.buffered_message_sequence;
CREATE SEQUENCE hostile.message_header_sequence;

-- a call of each function, in each of its ways
INSERT INTO hostile_inbox.sequence_declaration (name, retention_period) VALUES ('T', '1 day');
INSERT INTO hostile_inbox.message_type_declaration (message_type, sequence_name) VALUES ('B', 'T');
CREATE FUNCTION hostile_inbox.use_all(
    round text, OUT claimed boolean, OUT again boolean, OUT "window" boolean, OUT tried text,
    OUT tried_window text, OUT tried_again text, OUT state text, OUT failed boolean, OUT attempts int)
LANGUAGE plpgsql AS $$
DECLARE
    instance bigint := pg_catalog.seqinbox_open_instance('S', round, '1 day');
    waiting bigint;
BEGIN
    claimed := pg_catalog.seqinbox_claim('A', round, instance);
    again := pg_catalog.seqinbox_claim('A', round, instance);
    "window" := pg_catalog.seqinbox_claim('A', pg_catalog.format('%s, window', round));
    tried := pg_catalog.seqinbox_try_claim('A', pg_catalog.format('%s, tried', round), instance);
    tried_window := pg_catalog.seqinbox_try_claim('A', pg_catalog.format('%s, tried window', round));
    tried_again := pg_catalog.seqinbox_try_claim('A', round, instance);
    waiting := pg_catalog.seqinbox_store('A', round, instance, 'WAITING', 'value', 'key', '{a,b}', '{c,d}');
    PERFORM pg_catalog.seqinbox_store('A', round, instance, 'FAILED', error => 'error');
    PERFORM pg_catalog.seqinbox_store('A', pg_catalog.format('%s, processed', round), instance, 'PROCESSED');
    failed := pg_catalog.seqinbox_fail_and_release(waiting, 'error', '1 minute');
    PERFORM pg_catalog.seqinbox_record_failure('B', round, 'c', 'error', 'value', retry_after => '1 minute');
    PERFORM pg_catalog.seqinbox_record_failure('B', round, 'c', 'error');
    SELECT l.state, l.attempts INTO state, attempts FROM pg_catalog.seqinbox_lookup('B', round) AS l;
END
$$;

-- the traps work
SET search_path = hostile, hostile_inbox, pg_catalog;
SELECT 'a'::text = 'a'::text;
SELECT 1::bigint + 1::bigint;
SELECT max(n) FROM pg_catalog.generate_series(1::bigint, 2) AS n;
SELECT nextval('sequenced_message_sequence');
SELECT * FROM sequence_instance;
SELECT seqinbox_claim('A', 'a-1', 1);

-- the path is flipped after the first calls, and back
SET search_path = hostile_inbox;
SELECT * FROM hostile_inbox.use_all('before');
SET search_path = hostile, hostile_inbox, pg_catalog;
SELECT * FROM hostile_inbox.use_all('hostile, first');
SELECT * FROM hostile_inbox.use_all('hostile, second');
SET search_path = hostile_inbox, hostile, pg_catalog;
SELECT * FROM hostile_inbox.use_all('hostile behind the inbox');
SET search_path = hostile, hostile_inbox;
SELECT * FROM hostile_inbox.use_all('hostile behind pg_catalog');
SELECT seqinbox_claim('A', 'before', 1);
SET search_path = hostile_inbox;
SELECT * FROM hostile_inbox.use_all('after');

-- the first calls of a session are made along the hostile path, and no
-- windows were made ahead
\c -
DELETE FROM hostile_inbox.sequence_instance
 WHERE name = 'seqinbox.idempotence';
SET search_path = hostile, hostile_inbox, pg_catalog;
SELECT * FROM hostile_inbox.use_all('new session');
SET search_path = hostile_inbox;
SELECT * FROM hostile_inbox.use_all('new session, flipped');

-- an inbox is made and completed
SET client_min_messages = warning;
SET search_path = hostile, hostile_inbox, pg_catalog;
SELECT pg_catalog.seqinbox_create_inbox('hostile_made');
INSERT INTO hostile_made.sequence_instance (id, name, context_id, state, created_at, retain_until)
VALUES (1001, 'S', 'one', 'OPEN', pg_catalog.now(), pg_catalog.now());
INSERT INTO hostile_made.sequenced_message (id, message_type, cluster_name, topic, sequenced_message_id,
                                            idempotence_id, state, created_at, sequence_instance_id)
VALUES (2001, 'A', '', '', pg_catalog.gen_random_uuid(), 'a-1', 'WAITING', pg_catalog.now(), 1001);
ALTER TABLE hostile_made.sequenced_message DROP COLUMN attempts;
DROP SEQUENCE hostile_made.sequenced_message_sequence CASCADE;
DROP INDEX hostile_made.sequenced_message_unprocessed;
DROP TABLE hostile_made.dead_letter;
SELECT pg_catalog.seqinbox_create_inbox('hostile_made');
RESET search_path;
SELECT c.relname, a.attname, pg_get_expr(d.adbin, d.adrelid) AS "default"
  FROM pg_attrdef d
  JOIN pg_class c ON c.oid = d.adrelid
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.adnum
 WHERE c.relnamespace = 'hostile_made'::regnamespace
 ORDER BY c.relname COLLATE "C", a.attname COLLATE "C";
SELECT DISTINCT y.typnamespace::regnamespace AS types, collnamespace::regnamespace AS collations
  FROM pg_attribute a
  JOIN pg_class c ON c.oid = a.attrelid
  JOIN pg_type y ON y.oid = a.atttypid
  LEFT JOIN pg_collation l ON l.oid = a.attcollation
 WHERE c.relnamespace = 'hostile_made'::regnamespace AND c.relkind = 'r'
 ORDER BY 2;
SELECT indexdef FROM pg_indexes
 WHERE schemaname = 'hostile_made' AND indexname = 'sequenced_message_unprocessed';

DROP SCHEMA hostile, hostile_inbox, hostile_made CASCADE;
