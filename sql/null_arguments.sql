-- Every function of the extension with each of its arguments NULL, one after
-- the other, with all NULL, and with all that have a default left out: none
-- is skipped because of a NULL, and none crashes.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('null_arguments');
SET search_path = null_arguments;
INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
VALUES (1001, 'S', 'one', 'OPEN', now(), now());
INSERT INTO sequence_declaration (name, retention_period) VALUES ('S', '1 day');
INSERT INTO message_type_declaration (message_type, sequence_name) VALUES ('A', 'S');
SELECT seqinbox_claim('A', 'waiting', 1001);
SELECT setval('sequenced_message_sequence', 2001, false);
SELECT seqinbox_store('A', 'waiting', 1001, 'WAITING', 'value') AS id;
INSERT INTO dead_letter (id, sequence_name, context_id, message_type, cluster_name, topic, sequenced_message_id,
                         idempotence_id, state, created_at, attempts, reason, removed_at, payload_buffered)
VALUES (3001, 'S', 'one', 'A', '', '', '00112233-4455-6677-8899-aabbccddeeff', 'dead', 'WAITING', now(), 0,
        'reason', now(), true);
CREATE ROLE regress_null_arguments;

-- a value for each argument, by its name
CREATE TABLE argument (name text PRIMARY KEY, value text NOT NULL);
INSERT INTO argument
VALUES ('cluster_name', 'main'), ('cluster_names', '{main}'), ('context_id', 'one'), ('context_ids', '{one}'),
       ('dead_letter_id', '3001'),
       ('declaration', '{"sequences": [{"name": "S", "retentionPeriod": "24h", "messages": [{"type": "A"}]}]}'),
       ('error', 'error'), ('header_counts', '{1}'), ('header_names', '{h}'), ('header_values', '{v}'),
       ('id', '2001'), ('idempotence_id', 'new'), ('idempotence_ids', '{new}'),
       ('inbox_schema', 'null_arguments'), ('message_key', 'key'), ('message_keys', '{key}'),
       ('message_type', 'A'), ('message_types', '{A}'),
       ('message_uuid', '00112233-4455-6677-8899-aabbccddeeff'),
       ('message_uuids', '{00112233-4455-6677-8899-aabbccddeeff}'),
       ('message_value', 'value'), ('message_values', '{value}'), ('privilege', 'observer'),
       ('reason', 'reason'), ('retention_period', '1 day'), ('role', 'regress_null_arguments'),
       ('retry_after', '1 hour'), ('sequence_instance_id', '1001'), ('sequence_name', 'S'),
       ('state', 'WAITING'), ('topic', 'orders'), ('topics', '{orders}'),
       ('traceparent', '00-00000000000000010000000000000002-0000000000000003-01'),
       ('traceparents', '{00-00000000000000010000000000000002-0000000000000003-01}');

-- the functions with the names of their input arguments and the number of
-- those that have no default
CREATE VIEW function AS
SELECT p.oid, p.proname, p.pronargs - p.pronargdefaults AS needed,
       coalesce(p.proargnames[1:p.pronargs], '{}') AS arguments
  FROM pg_proc p
  JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
  JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
 WHERE e.extname = 'seqinbox' AND p.prokind = 'f';

-- what a call comes to; nothing of it stays
CREATE FUNCTION outcome(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE 'SELECT r::text FROM ' || call || ' AS r' INTO result;
    RAISE SQLSTATE 'UNDO0' USING MESSAGE = CASE WHEN result IS NULL THEN 'NULL' ELSE 'not NULL' END;
EXCEPTION
    WHEN SQLSTATE 'UNDO0' THEN
        RETURN sqlerrm;
    WHEN OTHERS THEN
        RETURN sqlstate || ' ' || sqlerrm;
END
$$;

-- a call that passes the first "length" arguments, all but one of them as above
CREATE FUNCTION call(f function, length integer, null_argument text) RETURNS text LANGUAGE sql AS $$
    SELECT f.proname || '(' || coalesce(string_agg(
               CASE WHEN a.name = null_argument THEN 'NULL' ELSE coalesce(quote_literal(v.value), '?' || a.name) END,
               ', ' ORDER BY a.place), '') || ')'
      FROM unnest(f.arguments[1:length]) WITH ORDINALITY AS a (name, place)
      LEFT JOIN argument v ON v.name = a.name
$$;

-- no argument is NULL: all calls succeed, but for a message that waits there is
-- nothing to retry
SELECT f.proname, outcome(call(f, cardinality(f.arguments), NULL)) AS all_given,
       outcome(call(f, f.needed, NULL)) AS needed_given
  FROM function f ORDER BY f.proname COLLATE "C";

-- one is
SELECT f.proname, a.name AS is_null, outcome(call(f, cardinality(f.arguments), a.name))
  FROM function f, unnest(f.arguments) WITH ORDINALITY AS a (name, place)
 ORDER BY f.proname COLLATE "C", a.place;

-- all are
SELECT f.proname,
       outcome(f.proname || '(' || (SELECT string_agg('NULL', ', ') FROM unnest(f.arguments)) || ')') AS all_null
  FROM function f WHERE f.arguments <> '{}' ORDER BY f.proname COLLATE "C";

-- nothing of all this stayed
SELECT (SELECT count(*) FROM sequential_inbox_idempotence) AS claims,
       (SELECT count(*) FROM sequenced_message) AS messages;

RESET search_path;
DROP SCHEMA null_arguments CASCADE;
DROP ROLE regress_null_arguments;
