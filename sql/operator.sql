-- What an operator does: consume, expire, consume all, close; by function and
-- by writing pending_action, as other programs do.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('operator');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = operator;
SELECT seqinbox_declare('{"sequences": [
    {"name": "S", "retentionPeriod": "1 day", "messages": [
        {"type": "A"},
        {"type": "B", "releaseCondition": {"predecessor": "A"}},
        {"type": "C", "releaseCondition": {"predecessor": "B"}}]}]}');
CREATE FUNCTION receive(type text, message text, context text) RETURNS text LANGUAGE sql AS $$
SELECT outcome FROM seqinbox_receive(type, message, context, convert_to('value of ' || message, 'UTF8'))
$$;
CREATE FUNCTION instance(context text) RETURNS bigint LANGUAGE sql AS $$
SELECT id FROM sequence_instance WHERE context_id = context
$$;
CREATE FUNCTION id(message text) RETURNS bigint LANGUAGE sql AS $$
SELECT id FROM sequenced_message WHERE idempotence_id = message
$$;
CREATE FUNCTION next(context text) RETURNS text LANGUAGE sql AS $$
SELECT idempotence_id || ': ' || convert_from(message_value, 'UTF8') FROM seqinbox_next(instance(context))
$$;
CREATE FUNCTION next() RETURNS text LANGUAGE sql AS $$
SELECT idempotence_id || ': ' || convert_from(message_value, 'UTF8') FROM seqinbox_next()
$$;
CREATE VIEW record AS
SELECT context_id, i.state AS instance, i.pending_action AS instance_action, release_due_at IS NOT NULL AS due,
       message_type AS type, m.idempotence_id AS message, m.state, m.pending_action AS action,
       EXISTS (SELECT FROM buffered_message b WHERE b.sequenced_message_id = m.id) AS buffered,
       EXISTS (SELECT FROM sequential_inbox_idempotence c
                WHERE (c.message_type, c.idempotence_id) = (m.message_type, m.idempotence_id)) AS claimed
  FROM sequence_instance i
  LEFT JOIN sequenced_message m ON m.sequence_instance_id = i.id
 WHERE name = 'S'
 ORDER BY i.id, m.id;
-- fails, with a resend or a retry to come
CREATE FUNCTION fail(message text, context text) RETURNS boolean LANGUAGE sql AS $$
SELECT seqinbox_record_failure('A', message, context, 'error', convert_to('value of ' || message, 'UTF8')) > 0
$$;

-- consume: the message is released, though A is missing
SELECT receive('B', 'b-1', 'consume'), receive('C', 'c-1', 'consume'), receive('B', 'b-2', 'consume');
SELECT next('consume');
SELECT * FROM record WHERE context_id = 'consume';
SELECT seqinbox_consume(id('b-2'));
SELECT * FROM record WHERE context_id = 'consume';
SELECT next();
-- C has its predecessor now, the other B has not
SELECT next();
SELECT next();
SELECT * FROM record WHERE context_id = 'consume';
-- A is handled when it comes, and releases what still waits
SELECT receive('A', 'a-1', 'consume');
SELECT next('consume');
SELECT * FROM record WHERE context_id = 'consume';
-- by pending_action: found, though no drain is due
SELECT receive('B', 'b-3', 'consume outside'), receive('C', 'c-3', 'consume outside');
SELECT next('consume outside');
UPDATE sequenced_message SET pending_action = 'CONSUME' WHERE idempotence_id = 'c-3';
SELECT * FROM record WHERE context_id = 'consume outside';
SELECT next();
SELECT next();
SELECT receive('B', 'b-4', 'consume outside');
UPDATE sequenced_message SET pending_action = 'CONSUME' WHERE idempotence_id = 'b-4';
SELECT next('consume outside');
SELECT next('consume outside');
SELECT * FROM record WHERE context_id = 'consume outside';
-- twice is once; a rollback of the handler keeps it
SELECT receive('B', 'b-5', 'consume twice');
SELECT seqinbox_consume(id('b-5')), seqinbox_consume(id('b-5'));
BEGIN;
SELECT next('consume twice');
ROLLBACK;
SELECT next('consume twice');
SELECT next('consume twice');
-- of several, in their order among those that may be released anyway
SELECT receive('C', 'c-6', 'consume order'), receive('B', 'b-6', 'consume order'), receive('C', 'c-7', 'consume order'),
       receive('C', 'c-8', 'consume order'), receive('A', 'a-6', 'consume order');
SELECT seqinbox_consume(id('c-8')), seqinbox_consume(id('c-6'));
SELECT next('consume order'), next('consume order'), next('consume order'), next('consume order'), next('consume order');

-- a message that failed: released at once, though A is missing
SELECT seqinbox_record_failure('B', 'b-9', 'consume failed', 'error 1', 'the value') > 0 AS failed;
SELECT next('consume failed');
SELECT seqinbox_consume(id('b-9'));
SELECT * FROM record WHERE context_id = 'consume failed';
BEGIN;
SELECT next();
ROLLBACK;
-- when it fails again it is still not to wait for A, once it is to be retried
SELECT seqinbox_fail_and_release(id('b-9'), 'error 2');
SELECT next('consume failed');
SELECT seqinbox_retry(id('b-9'));
SELECT next();
SELECT * FROM record WHERE context_id = 'consume failed';

-- expire: counts as processed, without the handler
SELECT receive('C', 'c-10', 'expire'), receive('B', 'b-10', 'expire');
SELECT next('expire');
SELECT seqinbox_expire(id('b-10'));
SELECT * FROM record WHERE context_id = 'expire';
-- its successor is released; it is not handed out itself, and stays a duplicate
SELECT next();
SELECT next();
SELECT receive('B', 'b-10', 'expire');
-- the last of all types: the instance closes
SELECT receive('C', 'c-11', 'expire last'), receive('A', 'a-11', 'expire last'), receive('B', 'b-11', 'expire last'),
       seqinbox_record_failure('C', 'c-12', 'expire last', 'error', 'value') > 0 AS failed;
SELECT next('expire last');
SELECT receive('A', 'a-12', 'expire closes'), receive('B', 'b-12', 'expire closes'),
       seqinbox_record_failure('C', 'c-13', 'expire closes', 'error', 'value', retry_after => '1 hour') > 0 AS failed;
SELECT seqinbox_expire(id('c-13'));
SELECT * FROM record WHERE context_id LIKE 'expire %';
-- a message that failed and is expired has no claim; it is a duplicate by its
-- record
SELECT seqinbox_expire(id('c-12'));
SELECT receive('C', 'c-12', 'expire last'), receive('C', 'c-13', 'expire closes');
SELECT next('expire closes');
-- by pending_action: of one that waits, of one that failed
SELECT receive('C', 'c-14', 'expire outside'), receive('B', 'b-14', 'expire outside'), fail('a-14', 'expire outside');
SELECT next('expire outside');
UPDATE sequenced_message SET pending_action = 'EXPIRE' WHERE idempotence_id = 'b-14';
SELECT next();
SELECT * FROM record WHERE context_id = 'expire outside';
UPDATE sequenced_message SET pending_action = 'EXPIRE' WHERE idempotence_id = 'a-14';
SELECT next('expire outside');
SELECT * FROM record WHERE context_id = 'expire outside';
-- expiring A releases B
SELECT receive('B', 'b-15', 'expire predecessor'), fail('a-15', 'expire predecessor');
UPDATE sequenced_message SET pending_action = 'EXPIRE' WHERE idempotence_id = 'a-15';
SELECT next('expire predecessor');

-- consume all: everything that waits, in its order, until nothing does; not
-- what failed, and not what comes later
SELECT receive('C', 'c-20', 'consume all'), receive('B', 'b-20', 'consume all'), fail('a-20', 'consume all'),
       receive('C', 'c-21', 'consume all');
SELECT next('consume all');
SELECT seqinbox_consume_all(instance('consume all'));
SELECT * FROM record WHERE context_id = 'consume all';
SELECT next();
SELECT receive('B', 'b-21', 'consume all');
SELECT next(), next(), next();
SELECT next();
SELECT * FROM record WHERE context_id = 'consume all';
SELECT receive('B', 'b-22', 'consume all');
SELECT next('consume all');
-- by pending_action
SELECT receive('C', 'c-23', 'consume all outside'), receive('B', 'b-23', 'consume all outside');
SELECT next('consume all outside');
UPDATE sequence_instance SET pending_action = 'CONSUME_ALL' WHERE context_id = 'consume all outside';
SELECT next(), next(), next();
SELECT * FROM record WHERE context_id = 'consume all outside';
SELECT receive('B', 'b-24', 'consume all argument'), receive('C', 'c-24', 'consume all argument');
SELECT next('consume all argument');
UPDATE sequence_instance SET pending_action = 'CONSUME_ALL' WHERE context_id = 'consume all argument';
SELECT next('consume all argument'), next('consume all argument'), next('consume all argument');
-- nothing waits
SELECT seqinbox_consume_all(instance('consume all'));
UPDATE sequence_instance SET pending_action = 'CONSUME_ALL' WHERE context_id = 'consume all argument';
SELECT next(), next();
SELECT DISTINCT context_id, instance, instance_action, due FROM record WHERE context_id LIKE 'consume all%' ORDER BY 1;

-- close: what was processed stays, the rest becomes dead letters, with all
-- that is known of them
SELECT receive('A', 'a-30', 'close');
SELECT outcome FROM seqinbox_receive('C', 'c-30', 'close', 'value', 'key', '{h,h,i}', '{v,NULL,""}', 'orders', 'main',
                                     '00112233-4455-6677-8899-aabbccddeeff',
                                     '00-00000000000000010000000000000002-0000000000000003-01');
SELECT outcome FROM seqinbox_receive('C', 'c-31', 'close', NULL, message_uuid => '00112233-4455-6677-8899-aabbccddee00');
SELECT seqinbox_record_failure('B', 'b-30', 'close', 'error 1') > 0 AS failed,
       seqinbox_record_failure('B', 'b-30', 'close', 'error 2', 'value', NULL, '{j}', '{""}', retry_after => '1 hour',
                               message_uuid => '00112233-4455-6677-8899-aabbccddee01') > 0 AS again,
       seqinbox_record_failure('B', 'b-31', 'close', 'no payload',
                               message_uuid => '00112233-4455-6677-8899-aabbccddee02') > 0 AS failed;
CREATE TABLE before AS SELECT * FROM sequenced_message WHERE sequence_instance_id = instance('close');
SELECT seqinbox_close(instance('close'));
SELECT * FROM record WHERE context_id = 'close';
SELECT closed_at BETWEEN now() - interval '1 hour' AND now() AS closed_at, remove_after
  FROM sequence_instance WHERE context_id = 'close';
SELECT sequence_name, context_id, message_type, idempotence_id, state, attempts, last_error, reason,
       payload_buffered, message_key, message_value, header_names, header_values
  FROM dead_letter ORDER BY id \gx
SELECT idempotence_id, topic, cluster_name, sequenced_message_id AS uuid, trace_id_high, trace_id, span_id, parent_span_id,
       trace_id_string, sampled,
       created_at = (SELECT created_at FROM before b WHERE b.idempotence_id = d.idempotence_id) AS created_at,
       removed_at BETWEEN created_at AND now() AS removed_at
  FROM dead_letter d ORDER BY id;
SELECT (SELECT count(*) FROM buffered_message WHERE sequence_instance_id = instance('close')) AS buffered,
       (SELECT count(*) FROM message_header JOIN buffered_message b ON b.id = buffered_message_id
         WHERE sequence_instance_id = instance('close')) AS headers;
-- those that waited are still claimed: a redelivery is a duplicate, without a
-- record
SELECT process, outcome, id, sequence_instance_id, attempts, release_due FROM seqinbox_receive('C', 'c-30', 'close', 'value');
-- a new message is handled
SELECT receive('C', 'c-32', 'close');
SELECT next('close');
-- again: nothing more happens
SELECT closed_at FROM sequence_instance WHERE context_id = 'close' \gset
SELECT seqinbox_close(instance('close'));
SELECT closed_at = :'closed_at' AS as_before, (SELECT count(*) FROM dead_letter) AS dead_letters
  FROM sequence_instance WHERE context_id = 'close';
-- a rollback takes it back
SELECT receive('C', 'c-33', 'close undone');
BEGIN;
SELECT seqinbox_close(instance('close undone'));
ROLLBACK;
SELECT * FROM record WHERE context_id = 'close undone';
-- nothing waits
SELECT receive('A', 'a-34', 'close nothing');
SELECT seqinbox_close(instance('close nothing'));
SELECT * FROM record WHERE context_id = 'close nothing';
SELECT count(*) FROM dead_letter WHERE context_id = 'close nothing';
-- by pending_action: next closes, whether the drain is due or not, and goes on
-- to the next instance
SELECT next('close undone');
SELECT receive('B', 'b-35', 'close outside'), receive('C', 'c-35', 'close outside');
SELECT next('close outside');
UPDATE sequence_instance SET pending_action = 'CLOSE' WHERE context_id = 'close outside';
SELECT * FROM record WHERE context_id = 'close outside';
SELECT next();
SELECT * FROM record WHERE context_id = 'close outside';
SELECT receive('C', 'c-36', 'close due'), receive('B', 'b-37', 'another'), receive('A', 'a-37', 'another');
UPDATE sequence_instance SET pending_action = 'CLOSE', release_due_at = now() - interval '1 hour'
 WHERE context_id = 'close due';
SELECT next();
SELECT * FROM record WHERE context_id = 'close due';
SELECT receive('C', 'c-38', 'close argument');
UPDATE sequence_instance SET pending_action = 'CLOSE' WHERE context_id = 'close argument';
SELECT next('close argument');
SELECT * FROM record WHERE context_id = 'close argument';
SELECT idempotence_id, reason FROM dead_letter WHERE context_id LIKE 'close %' ORDER BY id;

-- what other programs may leave: an action for a message that it no longer
-- concerns, or one that is unknown
SELECT receive('A', 'a-40', 'left'), receive('C', 'c-40', 'left'),
       seqinbox_record_failure('A', 'a-41', 'left', 'error') > 0 AS failed;
SELECT next('left');
UPDATE sequenced_message SET pending_action = 'CONSUME' WHERE idempotence_id = 'a-40';
UPDATE sequenced_message SET pending_action = 'OTHER' WHERE idempotence_id = 'c-40';
UPDATE sequence_instance SET pending_action = 'OTHER' WHERE context_id = 'left';
SELECT next(), next('left');
UPDATE sequenced_message SET pending_action = 'EXPIRE' WHERE idempotence_id = 'a-40';
SELECT next(), next('left');
SELECT * FROM record WHERE context_id = 'left';

-- what may be wrong: the state does not allow it
UPDATE sequenced_message SET id = 1001 WHERE idempotence_id = 'a-40';
SELECT seqinbox_consume(1001);
\echo :SQLSTATE
SELECT seqinbox_expire(1001);
\echo :SQLSTATE
-- nor does a payload that is not there
UPDATE sequenced_message SET id = 1002 WHERE idempotence_id = 'a-41';
SELECT seqinbox_consume(1002);
\echo :SQLSTATE
-- unknown
SELECT seqinbox_consume(999999);
\echo :SQLSTATE
SELECT seqinbox_expire(999999);
\echo :SQLSTATE
SELECT seqinbox_consume_all(999999);
\echo :SQLSTATE
SELECT seqinbox_close(999999);
\echo :SQLSTATE
-- NULL
SELECT seqinbox_consume(NULL);
\echo :SQLSTATE
SELECT seqinbox_expire(NULL);
\echo :SQLSTATE
SELECT seqinbox_consume_all(NULL);
\echo :SQLSTATE
SELECT seqinbox_close(NULL);
\echo :SQLSTATE
-- a transaction that is read-only
SELECT instance('left') AS instance, id('c-40') AS message \gset
\set VERBOSITY sqlstate
BEGIN READ ONLY;
SELECT seqinbox_consume(:message);
ROLLBACK;
BEGIN READ ONLY;
SELECT seqinbox_expire(:message);
ROLLBACK;
BEGIN READ ONLY;
SELECT seqinbox_consume_all(:instance);
ROLLBACK;
BEGIN READ ONLY;
SELECT seqinbox_close(:instance);
ROLLBACK;
\set VERBOSITY default
SELECT * FROM record WHERE context_id = 'left';

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA operator CASCADE;
