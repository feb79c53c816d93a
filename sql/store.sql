-- seqinbox_store: writes the record of a message and its payload.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('store');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = store;
INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
VALUES (1001, 'S', 'one', 'OPEN', now(), now()), (1002, 'S', 'two', 'OPEN', now(), now());
CREATE VIEW payload AS
SELECT m.idempotence_id, m.state, b.id IS NOT NULL AS buffered, b.sequence_instance_id AS instance,
       convert_from(b.message_key, 'UTF8') AS key, convert_from(b.message_value, 'UTF8') AS value,
       (SELECT string_agg(h.header_name || '=' || coalesce(convert_from(h.header_value, 'UTF8'), 'NULL'), ' '
                          ORDER BY h.id)
          FROM message_header h WHERE h.buffered_message_id = b.id) AS headers
  FROM sequenced_message m LEFT JOIN buffered_message b ON b.sequenced_message_id = m.id
 ORDER BY m.id, b.id;

-- a record with nothing but what it must have
SELECT seqinbox_store('A', 'least', 1001, 'PROCESSED') AS id;
SELECT id, message_type, idempotence_id, sequence_instance_id, state, topic, cluster_name,
       attempts, last_error, retry_at, pending_action, state_changed_at,
       sequenced_message_id IS NOT NULL AS uuid, trace_id_string, sampled
  FROM sequenced_message \gx

-- and one with all
SELECT seqinbox_store('A', 'most', 1001, 'WAITING', 'value', 'key', '{h1,h2}', '{v1,v2}',
                      'orders', 'main', '00112233-4455-6677-8899-aabbccddeeff',
                      '00-00000000000000010000000000000002-0000000000000003-01', 'error') AS id;
SELECT id, message_type, idempotence_id, sequence_instance_id, state, topic, cluster_name,
       attempts, last_error, sequenced_message_id AS uuid, trace_id_high, trace_id, span_id,
       parent_span_id, trace_id_string, sampled
  FROM sequenced_message WHERE idempotence_id = 'most' \gx
SELECT * FROM payload;

-- created_at is the moment of the call, not of the transaction's begin
BEGIN;
SELECT pg_sleep(0.01);
SELECT clock_timestamp() AS before \gset
SELECT seqinbox_store('A', 'moment', 1001, 'FAILED') AS id;
SELECT seqinbox_store('A', 'moment', 1001, 'PROCESSED') AS id;
SELECT created_at > now() AS since_begin, created_at BETWEEN :'before' AND clock_timestamp() AS created,
       state_changed_at BETWEEN created_at AND clock_timestamp() AS changed
  FROM sequenced_message WHERE idempotence_id = 'moment';
COMMIT;

-- a message stored again: what is not given stays
SELECT seqinbox_store('A', 'most', 1001, 'PROCESSED') AS id;
SELECT state, state_changed_at IS NOT NULL AS changed, topic, cluster_name,
       sequenced_message_id AS uuid, trace_id_high, trace_id, span_id, trace_id_string, sampled
  FROM sequenced_message WHERE idempotence_id = 'most' \gx
SELECT seqinbox_store('A', 'most', 1002, 'PROCESSED', topic => 'other', cluster_name => 'second',
                      message_uuid => '00000000-0000-0000-0000-000000000001',
                      traceparent => '00-00000000000000040000000000000005-0000000000000006-00') AS id;
SELECT sequence_instance_id, topic, cluster_name, sequenced_message_id AS uuid,
       trace_id_high, trace_id, span_id, trace_id_string, sampled
  FROM sequenced_message WHERE idempotence_id = 'most' \gx
-- a random uuid for each message that has none, and it stays
SELECT count(DISTINCT sequenced_message_id) AS uuids FROM sequenced_message;
SELECT sequenced_message_id AS uuid FROM sequenced_message WHERE idempotence_id = 'least' \gset
SELECT seqinbox_store('A', 'least', 1001, 'PROCESSED') AS id;
SELECT sequenced_message_id = :'uuid' AS same FROM sequenced_message WHERE idempotence_id = 'least';

-- from each state to each other
CREATE TABLE transition (old text, new text);
INSERT INTO transition
SELECT o, n FROM unnest('{WAITING,PROCESSED,FAILED}'::text[]) WITH ORDINALITY AS a (o, i),
                 unnest('{WAITING,PROCESSED,FAILED}'::text[]) WITH ORDINALITY AS b (n, j)
 ORDER BY i, j;
DO $$
DECLARE
    t transition;
    first bigint;
    second bigint;
BEGIN
    FOR t IN SELECT * FROM transition LOOP
        first := seqinbox_store('T', t.old || ' to ' || t.new, 1001, t.old, 'first', error => 'first error');
        BEGIN
            second := seqinbox_store('T', t.old || ' to ' || t.new, 1001, t.new, 'second', error => 'second error');
            RAISE NOTICE '% to %: %', t.old, t.new,
                CASE WHEN first = second THEN 'same record' ELSE 'another record' END;
        EXCEPTION WHEN OTHERS THEN
            RAISE NOTICE '% to %: %', t.old, t.new, sqlstate;
        END;
    END LOOP;
END
$$;
SELECT m.idempotence_id, m.state, m.attempts, m.last_error, p.value AS buffered
  FROM sequenced_message m JOIN payload p USING (idempotence_id)
 WHERE m.message_type = 'T' ORDER BY m.id;
SELECT seqinbox_store('A', 'least', 1001, 'WAITING');
\echo :SQLSTATE
SELECT seqinbox_store('A', 'least', 1001, 'FAILED');
\echo :SQLSTATE

-- a failure is counted each time; the last error is kept when none is given
SELECT seqinbox_store('A', 'fails', 1001, 'FAILED', error => 'one') AS id;
SELECT seqinbox_store('A', 'fails', 1001, 'FAILED') AS id;
SELECT attempts, last_error FROM sequenced_message WHERE idempotence_id = 'fails';
SELECT seqinbox_store('A', 'fails', 1001, 'WAITING') AS id;
SELECT attempts FROM sequenced_message WHERE idempotence_id = 'fails';
SELECT seqinbox_store('A', 'fails', 1001, 'FAILED', error => 'three') AS id;
SELECT attempts, last_error FROM sequenced_message WHERE idempotence_id = 'fails';
SELECT seqinbox_store('A', 'fails', 1001, 'PROCESSED') AS id;
SELECT state, attempts FROM sequenced_message WHERE idempotence_id = 'fails';

-- a retry or an action that was planned is over once there is a new state
SELECT seqinbox_store('A', 'planned', 1001, 'FAILED', 'value') AS id;
UPDATE sequenced_message SET pending_action = 'EXPIRE', retry_at = now() WHERE idempotence_id = 'planned';
SELECT seqinbox_store('A', 'planned', 1001, 'PROCESSED') AS id;
SELECT pending_action, retry_at FROM sequenced_message WHERE idempotence_id = 'planned';

-- the payload: kept while it waits or has failed, gone when it is processed
TRUNCATE sequenced_message, buffered_message, message_header;
SELECT seqinbox_store('A', 'life', 1001, 'WAITING', 'value', 'key', '{h}', '{v}') > 0 AS stored;
SELECT * FROM payload;
SELECT seqinbox_store('A', 'life', 1001, 'FAILED') > 0 AS stored;
SELECT * FROM payload;
SELECT seqinbox_store('A', 'life', 1001, 'FAILED', 'new value') > 0 AS stored;
SELECT * FROM payload;
SELECT seqinbox_store('A', 'life', 1001, 'WAITING', 'newer value', 'newer key', '{a,b}', '{c,d}') > 0 AS stored;
SELECT * FROM payload;
SELECT seqinbox_store('A', 'life', 1001, 'PROCESSED', 'not kept') > 0 AS stored;
SELECT * FROM payload;
SELECT count(*) AS headers FROM message_header;

-- a failed message with nothing to buffer has nothing buffered; a key or a
-- header is something
TRUNCATE sequenced_message, buffered_message, message_header;
SELECT seqinbox_store('A', 'nothing', 1001, 'FAILED') > 0 AS stored;
SELECT seqinbox_store('A', 'key', 1001, 'FAILED', NULL, 'key') > 0 AS stored;
SELECT seqinbox_store('A', 'header', 1001, 'FAILED', NULL, NULL, '{h}', '{NULL}') > 0 AS stored;
SELECT seqinbox_store('A', 'no headers', 1001, 'FAILED', NULL, NULL, '{}', '{}') > 0 AS stored;
SELECT * FROM payload;

-- no value is not an empty value
TRUNCATE sequenced_message, buffered_message, message_header;
SELECT seqinbox_store('A', 'tombstone', 1001, 'WAITING', NULL, 'key') > 0 AS stored;
SELECT seqinbox_store('A', 'empty', 1001, 'WAITING', '', '') > 0 AS stored;
SELECT seqinbox_store('A', 'becomes a tombstone', 1001, 'WAITING', 'value', 'key') > 0 AS stored;
SELECT seqinbox_store('A', 'becomes a tombstone', 1001, 'WAITING', NULL, 'key') > 0 AS stored;
\pset null '(null)'
SELECT idempotence_id, buffered, key, value FROM payload;
\pset null ''

-- payloads of any bytes and any size
SELECT seqinbox_store('A', 'bytes', 1001, 'WAITING', '\x00ff00', '\x00') > 0 AS stored;
SELECT seqinbox_store('A', 'big', 1001, 'WAITING',
                      (SELECT string_agg(sha512(n::text::bytea), '') FROM generate_series(1, 20000) AS n)) > 0 AS stored;
SELECT m.idempotence_id, b.message_key, length(b.message_value),
       b.message_value = (SELECT string_agg(sha512(n::text::bytea), '') FROM generate_series(1, 20000) AS n) AS same
  FROM buffered_message b JOIN sequenced_message m ON m.id = b.sequenced_message_id
 WHERE m.idempotence_id IN ('bytes', 'big') ORDER BY m.id;

-- headers: any number, in order, repeated, without a value, without a letter
TRUNCATE sequenced_message, buffered_message, message_header;
SELECT seqinbox_store('A', 'order', 1001, 'WAITING', NULL, NULL,
                      '{z,a,m,a,z,a,"",A}', '{1,2,NULL,2,3,"",empty,upper}') > 0 AS stored;
SELECT seqinbox_store('A', 'none', 1001, 'WAITING', NULL, NULL, '{}', NULL) > 0 AS stored;
SELECT seqinbox_store('A', 'from 5', 1001, 'WAITING', NULL, NULL, '[5:6]={a,b}', '[0:1]={c,d}') > 0 AS stored;
SELECT seqinbox_store('A', 'many', 1001, 'WAITING', NULL, NULL,
                      array_agg('h' || n), array_agg(n::text::bytea)) > 0 AS stored
  FROM generate_series(1, 1000) AS n;
SELECT idempotence_id, headers FROM payload WHERE idempotence_id <> 'many';
SELECT count(*), array_agg(header_name ORDER BY id) = (SELECT array_agg('h' || n) FROM generate_series(1, 1000) AS n) AS in_order
  FROM message_header WHERE header_name LIKE 'h%';

-- headers that do not fit: nothing is stored
TRUNCATE sequenced_message, buffered_message, message_header;
SELECT seqinbox_store('A', 'headers', 1001, 'WAITING', NULL, NULL, '{a,NULL}', '{b,c}');
\echo :SQLSTATE
SELECT seqinbox_store('A', 'headers', 1001, 'WAITING', NULL, NULL, '{a,b}', '{c}');
\echo :SQLSTATE
SELECT seqinbox_store('A', 'headers', 1001, 'WAITING', NULL, NULL, '{a}', NULL);
\echo :SQLSTATE
SELECT seqinbox_store('A', 'headers', 1001, 'WAITING', NULL, NULL, NULL, '{c}');
\echo :SQLSTATE
SELECT seqinbox_store('A', 'headers', 1001, 'WAITING', NULL, NULL, '{{a,b}}', '{c,d}');
\echo :SQLSTATE
SELECT seqinbox_store('A', 'headers', 1001, 'WAITING', NULL, NULL, '{a,b}', '{{c,d}}');
\echo :SQLSTATE
-- not even where the headers would not be kept
SELECT seqinbox_store('A', 'headers', 1001, 'PROCESSED', NULL, NULL, '{a,b}', '{c}');
\echo :SQLSTATE
SELECT count(*) FROM sequenced_message;

-- states that there are not
SELECT seqinbox_store('A', 'state', 1001, 'waiting');
\echo :SQLSTATE
SELECT seqinbox_store('A', 'state', 1001, 'OPEN');
\echo :SQLSTATE
SELECT seqinbox_store('A', 'state', 1001, '');
\echo :SQLSTATE
SELECT seqinbox_store('A', 'state', 1001, NULL);
\echo :SQLSTATE

-- what else may be wrong
SELECT seqinbox_store('A', 'x', 999999, 'PROCESSED');
\echo :SQLSTATE
SELECT seqinbox_store('A', 'x', NULL, 'PROCESSED');
\echo :SQLSTATE
SELECT seqinbox_store(NULL, 'x', 1001, 'PROCESSED');
\echo :SQLSTATE
SELECT seqinbox_store('A', '', 1001, 'PROCESSED');
\echo :SQLSTATE
SELECT seqinbox_store(repeat('x', 513), 'x', 1001, 'PROCESSED');
\echo :SQLSTATE
SELECT seqinbox_store('A', repeat('x', 2049), 1001, 'PROCESSED');
\echo :SQLSTATE
BEGIN READ ONLY;
SELECT seqinbox_store('A', 'x', 1001, 'PROCESSED');
\echo :SQLSTATE
ROLLBACK;
SELECT count(*) FROM sequenced_message;

-- the longest type and ID
SELECT seqinbox_store(left(string_agg(md5(n::text), ''), 512), left(string_agg(md5((-n)::text), ''), 2048),
                      1001, 'WAITING') > 0 AS stored
  FROM generate_series(1, 64) AS n;

-- the moment at which the instance is to be drained: WAITING sets it,
-- PROCESSED only where a message waits, FAILED never; an earlier moment stands
TRUNCATE sequenced_message, buffered_message, message_header;
CREATE FUNCTION due_after(state text, waiting boolean, due_at timestamptz) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before timestamptz := clock_timestamp();
    after timestamptz;
BEGIN
    DELETE FROM buffered_message;
    DELETE FROM sequenced_message;
    IF waiting THEN
        PERFORM seqinbox_store('A', 'before', 1001, 'WAITING');
    END IF;
    PERFORM seqinbox_store('A', 'other instance', 1002, 'WAITING');
    UPDATE sequence_instance SET release_due_at = due_at;
    PERFORM seqinbox_store('A', 'now', 1001, state);
    IF (SELECT release_due_at IS DISTINCT FROM due_at FROM sequence_instance WHERE id = 1002) THEN
        RAISE 'the other instance was touched';
    END IF;
    SELECT release_due_at INTO after FROM sequence_instance WHERE id = 1001;
    RETURN CASE WHEN after IS NOT DISTINCT FROM due_at THEN 'as before'
                WHEN after BETWEEN before AND clock_timestamp() THEN 'now' ELSE after::text END;
END
$$;
SELECT s AS state, w AS another_waits, coalesce(d::text, 'not set') AS due_before, due_after(s, w, d)
  FROM unnest('{WAITING,PROCESSED,FAILED}'::text[]) WITH ORDINALITY AS s (s, i),
       unnest('{f,t}'::boolean[]) AS w, unnest('{NULL,-infinity,infinity}'::timestamptz[]) AS d
 ORDER BY i, w, d NULLS FIRST;

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA store CASCADE;

-- a payload that is buffered follows its message to another instance, and stays
-- if it is not brought again
CREATE SCHEMA store_moves;
SELECT set_config('client_min_messages', 'warning', false) \gset
SELECT seqinbox_create_inbox('store_moves') \gset
SET search_path = store_moves;
INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
VALUES (1001, 'S', 'one', 'OPEN', now(), now()), (1002, 'S', 'two', 'OPEN', now(), now());
SELECT seqinbox_store('A', 'm', 1001, 'WAITING', 'value', 'key', '{a,a}', ARRAY['1', NULL]::bytea[]) > 0 AS stored;
SELECT seqinbox_store('A', 'm', 1002, 'FAILED') > 0 AS stored;
SELECT seqinbox_store('A', 'm', 1002, 'WAITING') > 0 AS stored;
SELECT m.state, m.sequence_instance_id, b.sequence_instance_id, b.message_value, b.message_key,
       (SELECT array_agg(h.header_name || coalesce(encode(h.header_value, 'escape'), '') ORDER BY h.id)
          FROM message_header h WHERE h.buffered_message_id = b.id) AS headers
  FROM sequenced_message m JOIN buffered_message b ON b.sequenced_message_id = m.id;
RESET search_path;
DROP SCHEMA store_moves CASCADE;
