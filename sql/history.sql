-- Records of before claims existed: several of one idempotence ID may be
-- there. They are never an error, and the one that says most counts:
-- PROCESSED before WAITING before FAILED, then the newest.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('history');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = history;
SELECT seqinbox_declare('{"sequences": [
    {"name": "S", "retentionPeriod": "1 day", "messages": [
        {"type": "A"}, {"type": "B", "releaseCondition": {"predecessor": "A"}}]}]}');
INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
VALUES (1001, 'S', 'one', 'OPEN', now(), now() + interval '1 day'),
       (1002, 'S', 'two', 'OPEN', now(), now() + interval '1 day');

/*
 * Writes records of one key, the oldest first, as programs do that know
 * neither claims nor the columns that this project added.
 */
CREATE FUNCTION remember(message text, states text[], type text DEFAULT 'A', instance bigint DEFAULT 1001,
                         first_id bigint DEFAULT NULL) RETURNS bigint LANGUAGE sql AS $$
WITH record AS (
    INSERT INTO sequenced_message (id, message_type, cluster_name, topic, sequenced_message_id, idempotence_id, state,
                                   created_at, sequence_instance_id)
    SELECT coalesce(first_id + n, nextval('sequenced_message_sequence')), type, 'main', 'orders', gen_random_uuid(),
           message, state, '2020-01-01'::timestamptz + n * interval '1 hour', instance
      FROM unnest(states) WITH ORDINALITY AS s (state, n)
 RETURNING id, state),
buffered AS (
    INSERT INTO buffered_message (sequence_instance_id, sequenced_message_id, message_value)
    SELECT instance, id, convert_to(message, 'UTF8') FROM record WHERE state <> 'PROCESSED')
SELECT count(*) FROM record
$$;
-- the records of a key, the oldest first
CREATE FUNCTION states(message text) RETURNS text LANGUAGE sql AS $$
SELECT string_agg(state, ' ' ORDER BY created_at, id) FROM sequenced_message WHERE idempotence_id = message
$$;
-- the place of a record among them
CREATE FUNCTION place(record bigint) RETURNS bigint LANGUAGE sql AS $$
SELECT place FROM (SELECT id, rank() OVER (PARTITION BY message_type, idempotence_id ORDER BY created_at, id) AS place
                     FROM sequenced_message) AS r WHERE id = record
$$;
CREATE TABLE history (n int GENERATED ALWAYS AS IDENTITY, states text[], message text);
INSERT INTO history (states)
VALUES ('{PROCESSED}'), ('{WAITING}'), ('{FAILED}'),
       ('{PROCESSED,PROCESSED}'), ('{PROCESSED,FAILED}'), ('{FAILED,PROCESSED}'), ('{FAILED,FAILED}'),
       ('{WAITING,FAILED}'), ('{FAILED,WAITING}'), ('{WAITING,PROCESSED}'), ('{PROCESSED,WAITING}'), ('{WAITING,WAITING}'),
       ('{FAILED,WAITING,PROCESSED,FAILED,WAITING}'), ('{FAILED,WAITING,FAILED,WAITING,FAILED}'),
       ('{FAILED,FAILED,FAILED,FAILED}');
UPDATE history SET message = array_to_string(states, ' ');
SELECT sum(remember(message, states)) AS messages FROM history;

-- the one that counts
SELECT message, place(l.id) AS counts, l.state FROM history, LATERAL seqinbox_lookup('A', message) AS l ORDER BY n;

-- a delivery: a duplicate, unless all have failed; then the newest is written
-- over
SELECT message AS history, process, outcome, place(r.id) AS record, sequence_instance_id AS instance, attempts,
       states(message) AS afterwards
  FROM history, LATERAL seqinbox_receive('A', message, 'two', 'value') AS r ORDER BY n;
-- the claim stays, so that the next delivery is a duplicate at once
SELECT count(*) AS claims FROM sequential_inbox_idempotence JOIN history ON idempotence_id = message;
SELECT message AS history, outcome, place(r.id) AS record, states(message) AS afterwards
  FROM history, LATERAL seqinbox_receive('A', message, 'two', 'value') AS r ORDER BY n;

-- the same in a batch
UPDATE history SET message = 'batch ' || message;
SELECT sum(remember(message, states)) AS messages FROM history;
SELECT message AS history, process, outcome, place(b.id) AS record, states(message) AS afterwards
  FROM (SELECT array_agg('A'::text) AS types, array_agg(message ORDER BY n) AS messages,
               array_agg('two'::text) AS contexts, array_agg('value'::bytea) AS values
          FROM history) AS a,
       LATERAL seqinbox_receive_batch(types, messages, contexts, values) AS b,
       LATERAL (SELECT messages[ordinal] AS message) AS m
 ORDER BY ordinal;

-- of the same moment, the one with the greater ID is the newest
SELECT remember('same moment', '{FAILED,FAILED,FAILED}', first_id => 5000);
UPDATE sequenced_message SET created_at = '2020-01-01' WHERE idempotence_id = 'same moment';
SELECT outcome, id FROM seqinbox_receive('A', 'same moment', 'two', 'value');

-- in different instances, and of different types
SELECT remember('instances', '{FAILED}', 'A', 1001, 6000), remember('instances', '{PROCESSED}', 'A', 1002, 6100);
SELECT outcome, id, sequence_instance_id FROM seqinbox_receive('A', 'instances', 'one', 'value');
SELECT remember('types', '{PROCESSED,FAILED}', 'A'), remember('types', '{FAILED,FAILED}', 'B', 1001, 6200);
SELECT outcome, id FROM seqinbox_receive('B', 'types', 'one', 'value');
SELECT outcome FROM seqinbox_receive('A', 'types', 'one', 'value');

-- all failed, and the condition does not hold: the newest waits
SELECT remember('waits', '{FAILED,FAILED}', 'B', 1001, 7000);
SELECT outcome, id, sequence_instance_id IN (1001, 1002) AS instance FROM seqinbox_receive('B', 'waits', 'three', 'value');
SELECT id, state, sequence_instance_id IN (1001, 1002) AS instance
  FROM sequenced_message WHERE idempotence_id = 'waits' ORDER BY id;
SELECT outcome FROM seqinbox_receive('A', 'releases', 'three', 'value');
SELECT n.id, n.idempotence_id FROM sequence_instance i, LATERAL seqinbox_next(i.id) AS n WHERE i.context_id = 'three';
SELECT outcome, id FROM seqinbox_receive('B', 'waits', 'three', 'value');

-- as predecessors, one that was processed is enough
INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
VALUES (1004, 'S', 'four', 'OPEN', now(), now() + interval '1 day');
SELECT remember('predecessor', '{FAILED,PROCESSED,FAILED}', 'A', 1004);
SELECT seqinbox_is_releasable('B', 1004);
SELECT outcome FROM seqinbox_receive('B', 'successor', 'four', 'value');

-- those that waited from before are handed out in their order
INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
VALUES (1005, 'S', 'five', 'OPEN', now(), now() + interval '1 day');
SELECT remember('waited', '{WAITING}', 'B', 1005, 8000), remember('waited too', '{FAILED,WAITING}', 'B', 1005, 7500);
SELECT count(*) FROM seqinbox_next(1005);
SELECT outcome, release_due FROM seqinbox_receive('A', 'a-5', 'five', 'value');
SELECT id, idempotence_id, convert_from(message_value, 'UTF8') AS value, topic, cluster_name, attempts, traceparent
  FROM generate_series(1, 5) AS turn, seqinbox_next(1005 + 0 * turn);

-- the other functions take them as well
SELECT remember('store', '{FAILED,FAILED}', 'A', 1001, 9000);
SELECT seqinbox_store('A', 'store', 1001, 'PROCESSED') AS stored;
SELECT seqinbox_store('A', 'store', 1001, 'PROCESSED') AS again;
SELECT remember('failure', '{FAILED,FAILED}', 'A', 1001, 9100);
SELECT seqinbox_record_failure('A', 'failure', 'one', 'error') AS recorded;
SELECT remember('fail', '{WAITING,FAILED}', 'A', 1001, 9200);
SELECT seqinbox_fail_and_release(9201);
SELECT states('fail');
SELECT outcome, id FROM seqinbox_receive('A', 'fail', 'one', 'value');
-- a failed record is not tried again where another one was processed or waits;
-- of several that failed, only one
INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
VALUES (1007, 'S', 'seven', 'OPEN', now(), now() + interval '1 day');
SELECT remember('tried 1', '{PROCESSED,FAILED}', 'A', 1007, 9300), remember('tried 2', '{WAITING,FAILED}', 'A', 1007, 9310),
       remember('tried 3', '{FAILED,FAILED}', 'A', 1007, 9320);
SELECT seqinbox_retry(9302), seqinbox_retry(9312), seqinbox_retry(9321), seqinbox_retry(9322);
SELECT id, idempotence_id FROM generate_series(1, 5) AS turn, seqinbox_next(1007 + 0 * turn);
SELECT states('tried 1'), states('tried 2'), states('tried 3');
-- a failed record does not fail again where another one has the claim
SELECT seqinbox_fail_and_release(9302);
\echo :SQLSTATE
SELECT states('tried 1');
-- a missing predecessor with several records is listed once
INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
VALUES (1006, 'S', 'six', 'OPEN', now(), now() + interval '1 day');
SELECT remember('missed', '{FAILED,FAILED}', 'A', 1006), remember('misses', '{WAITING,WAITING}', 'B', 1006, 9400);
SELECT id, predecessor, predecessor_state FROM seqinbox_waiting() WHERE context_id = 'six' ORDER BY id;
SELECT seqinbox_diagram('S', 'six');

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA history CASCADE;
