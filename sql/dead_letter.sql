-- seqinbox_dead_letter gives up on a message; seqinbox_requeue takes it in
-- again.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('dead_letter');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = dead_letter;
SET timezone = 'UTC';
SELECT seqinbox_declare('{"sequences": [
    {"name": "Orders", "retentionPeriod": "10 days", "messages": [
        {"type": "A"}, {"type": "B", "releaseCondition": {"predecessor": "A"}}]},
    {"name": "Recorded", "retentionPeriod": "10 days", "sequencingStartTimestamp": "infinity",
     "messages": [{"type": "R"}]}]}');
CREATE VIEW record AS
SELECT m.id, i.context_id, m.message_type, m.idempotence_id, m.state, m.attempts, b.id IS NOT NULL AS buffered
  FROM sequenced_message m
  JOIN sequence_instance i ON i.id = m.sequence_instance_id
  LEFT JOIN buffered_message b ON b.sequenced_message_id = m.id
 ORDER BY m.id;
CREATE VIEW letter AS
SELECT id, context_id, message_type, idempotence_id, state, attempts, last_error, reason, payload_buffered,
       convert_from(message_value, 'UTF8') AS value
  FROM dead_letter ORDER BY id;
CREATE VIEW left_over AS
SELECT (SELECT count(*) FROM sequenced_message) AS messages, (SELECT count(*) FROM buffered_message) AS buffered,
       (SELECT count(*) FROM message_header) AS headers,
       (SELECT count(*) FROM sequential_inbox_idempotence) AS claims, (SELECT count(*) FROM dead_letter) AS letters;

-- a waiting message: its record and payload become a dead letter, its claim
-- stays
SELECT id AS waiting FROM seqinbox_receive('B', 'b-1', 'order-1', 'value', 'key', '{second,first,second}', '{x,NULL,""}',
    'orders', 'main', '00112233-4455-6677-8899-aabbccddeeff',
    '00-0000000000000001fedcba9876543210-0000000000000003-01') \gset
SELECT id AS other FROM seqinbox_receive('B', 'b-2', 'order-1', 'other') \gset
UPDATE sequenced_message SET parent_span_id = 4 WHERE id = :waiting;
CREATE TABLE before AS SELECT * FROM sequenced_message;
SELECT * FROM record;
SELECT * FROM left_over;
SELECT seqinbox_dead_letter(:waiting, 'wrong address') AS letter \gset
SELECT * FROM record;
SELECT * FROM left_over;
SELECT id = :letter AS returned, context_id, message_type, idempotence_id, state, attempts, last_error, reason,
       payload_buffered, value
  FROM letter;
SELECT message_key, message_value, header_names, header_values FROM dead_letter;
SELECT count(*) AS same, topic, cluster_name, sequenced_message_id, trace_id_high, trace_id, span_id, parent_span_id,
       trace_id_string, sampled
  FROM dead_letter d JOIN before b USING (message_type, idempotence_id, topic, cluster_name, sequenced_message_id,
                                          trace_id_high, trace_id, span_id, parent_span_id, trace_id_string, sampled,
                                          created_at)
 WHERE d.sequence_name = 'Orders'
 GROUP BY topic, cluster_name, sequenced_message_id, trace_id_high, trace_id, span_id, parent_span_id,
       trace_id_string, sampled;
-- a redelivery is a duplicate
SELECT process, outcome, id FROM seqinbox_receive('B', 'b-1', 'order-1', 'value');
SELECT seqinbox_claim('B', 'b-1');
SELECT * FROM seqinbox_lookup('B', 'b-1');
SELECT * FROM left_over;

-- a failed message, which has no claim: a redelivery is a new message
SELECT seqinbox_record_failure('A', 'a-1', 'order-1', 'no stock', 'value', retry_after => '1 hour') AS failed \gset
SELECT seqinbox_dead_letter(:failed, 'no stock, ever') > :letter AS letter;
SELECT context_id, message_type, idempotence_id, state, attempts, last_error, reason, payload_buffered, value
  FROM letter WHERE idempotence_id = 'a-1';
SELECT * FROM left_over;
SELECT process, outcome FROM seqinbox_receive('A', 'a-1', 'order-1', 'value');

-- one without a payload
SELECT seqinbox_record_failure('A', 'a-2', 'order-1', 'error') AS no_payload \gset
SELECT seqinbox_dead_letter(:no_payload, 'gone') > :letter AS letter;
SELECT idempotence_id, payload_buffered, value FROM letter;

-- a processed message cannot be given up, nor one that does not exist or is
-- given up already
SELECT id AS processed FROM seqinbox_lookup('A', 'a-1') \gset
\set VERBOSITY sqlstate
SELECT seqinbox_dead_letter(:processed, 'reason');
\set VERBOSITY default
SELECT seqinbox_dead_letter(999999, 'reason');
\echo :SQLSTATE
\set VERBOSITY sqlstate
SELECT seqinbox_dead_letter(:waiting, 'reason');
\set VERBOSITY default
SELECT * FROM left_over;
SELECT seqinbox_dead_letter(NULL, 'reason');
\echo :SQLSTATE
SELECT seqinbox_dead_letter(:other, NULL);
\echo :SQLSTATE
SELECT seqinbox_dead_letter(:other, '');
\echo :SQLSTATE
SELECT seqinbox_dead_letter(:other, repeat('x', 8193));
\echo :SQLSTATE
BEGIN READ ONLY;
SELECT seqinbox_dead_letter(:other, 'reason');
\echo :SQLSTATE
ROLLBACK;
SET search_path = '';
SELECT seqinbox_dead_letter(1, 'reason');
\echo :SQLSTATE
SELECT seqinbox_requeue(1);
\echo :SQLSTATE
SET search_path = dead_letter;

-- rolled back, nothing happened
BEGIN;
SELECT seqinbox_dead_letter(:other, repeat('x', 8192)) > 0 AS letter;
SELECT count(*) AS letters FROM dead_letter WHERE length(reason) = 8192;
ROLLBACK;
SELECT state FROM sequenced_message WHERE id = :other;
SELECT message_type, idempotence_id, convert_from(message_value, 'UTF8') AS value FROM seqinbox_next();

-- giving up the last message that waits closes a complete instance ...
SELECT seqinbox_open_instance('Orders', 'complete') AS complete \gset
SELECT seqinbox_store('A', 'a-3', :complete, 'PROCESSED') > 0 AS stored,
       seqinbox_store('B', 'b-3', :complete, 'PROCESSED') > 0 AS stored;
SELECT seqinbox_store('B', 'b-4', :complete, 'WAITING', 'v') AS last \gset
UPDATE sequence_instance SET state = 'OPEN', closed_at = NULL WHERE id = :complete;
SELECT seqinbox_dead_letter(:last, 'reason') > 0 AS letter;
SELECT state, closed_at IS NOT NULL AS closed FROM sequence_instance WHERE id = :complete;
-- ... and no other
SELECT seqinbox_open_instance('Orders', 'incomplete') AS incomplete \gset
SELECT seqinbox_store('B', 'b-5', :incomplete, 'WAITING', 'v') AS last \gset
SELECT seqinbox_dead_letter(:last, 'reason') > 0 AS letter;
SELECT state, closed_at IS NOT NULL AS closed FROM sequence_instance WHERE id = :incomplete;
DELETE FROM dead_letter WHERE id <> :letter;

-- requeue: the message comes in again, with all that it had, and is buffered
-- when its condition does not hold
DELETE FROM sequenced_message;
DELETE FROM sequence_instance WHERE name = 'Orders';
INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
VALUES (5000, 'Orders', 'order-1', 'OPEN', now(), now() + interval '1 day');
INSERT INTO sequential_inbox_idempotence VALUES ('B', 'b-1', 5000, '2000-01-01');
SELECT process, outcome, id > :waiting AS new_id, sequence_instance_id, attempts, release_due
  FROM seqinbox_requeue(:letter);
SELECT context_id, message_type, idempotence_id, state, attempts, buffered FROM record;
SELECT * FROM left_over;
SELECT created_at > '2000-01-01' AS new_claim FROM sequential_inbox_idempotence;
SELECT release_due_at IS NOT NULL AS due FROM sequence_instance WHERE id = 5000;
SELECT process, outcome FROM seqinbox_receive('B', 'b-1', 'order-1', 'value');
SELECT outcome FROM seqinbox_receive('A', 'a-1', 'order-1', 'value');
SELECT message_type, idempotence_id, context_id, message_value, message_key, header_names, header_values, topic,
       cluster_name, message_uuid, traceparent, attempts
  FROM seqinbox_next();

-- a second time there is nothing to take in
\set VERBOSITY sqlstate
SELECT seqinbox_requeue(:letter);
\set VERBOSITY default
SELECT seqinbox_requeue(999999);
\echo :SQLSTATE
SELECT seqinbox_requeue(NULL);
\echo :SQLSTATE

-- no value is not the same as an empty one
SELECT outcome, id AS tombstone FROM seqinbox_receive('B', 'tombstone', 'order-2', NULL, 'key') \gset
SELECT outcome, id AS empty FROM seqinbox_receive('B', 'empty', 'order-2', '') \gset
SELECT seqinbox_dead_letter(:tombstone, 'reason') AS tombstone, seqinbox_dead_letter(:empty, 'reason') AS empty \gset
SELECT outcome FROM seqinbox_requeue(:tombstone);
SELECT outcome FROM seqinbox_requeue(:empty);
SELECT idempotence_id, message_key, message_value
  FROM sequenced_message m JOIN buffered_message b ON b.sequenced_message_id = m.id ORDER BY m.id;

-- its caller has no handler: it waits for a drain although its condition
-- holds, and so do its successors
SELECT seqinbox_record_failure('A', 'a-6', 'order-3', 'error', 'value') AS failed \gset
SELECT seqinbox_dead_letter(:failed, 'reason') AS letter \gset
SELECT process, outcome, sequence_instance_id AS instance, attempts, release_due FROM seqinbox_requeue(:letter) \gset
\echo :process :outcome :attempts :release_due
SELECT state, attempts FROM seqinbox_lookup('A', 'a-6');
SELECT seqinbox_claim('A', 'a-6');
SELECT count(*) AS letters FROM dead_letter;
SELECT outcome FROM seqinbox_receive('B', 'b-6', 'order-3', 'value');
SELECT idempotence_id, convert_from(message_value, 'UTF8') AS value FROM seqinbox_next(:instance);
SELECT idempotence_id, convert_from(message_value, 'UTF8') AS value FROM seqinbox_next(:instance);

-- rolled back, the dead letter is still there
SELECT seqinbox_record_failure('A', 'a-8', 'order-5', 'error', 'value') AS failed \gset
SELECT seqinbox_dead_letter(:failed, 'reason') AS letter \gset
BEGIN;
SELECT process, outcome FROM seqinbox_requeue(:letter);
ROLLBACK;
SELECT idempotence_id, state, attempts, last_error, value FROM letter;
SELECT count(*) AS records FROM sequenced_message WHERE idempotence_id = 'a-8';
BEGIN READ ONLY;
SELECT process, outcome FROM seqinbox_requeue(:letter);
\echo :SQLSTATE
ROLLBACK;

-- the message came in again meanwhile, by itself: a duplicate, and the dead
-- letter is no longer needed
SELECT process, outcome FROM seqinbox_receive('A', 'a-8', 'order-5', 'value');
SELECT process, outcome FROM seqinbox_requeue(:letter);
SELECT count(*) AS records FROM sequenced_message WHERE idempotence_id = 'a-8';
SELECT count(*) AS claims FROM sequential_inbox_idempotence WHERE idempotence_id = 'a-8';
SELECT count(*) AS letters FROM dead_letter;
-- ... or failed again
SELECT seqinbox_record_failure('A', 'a-9', 'order-6', 'error', 'value') AS failed \gset
SELECT seqinbox_dead_letter(:failed, 'reason') AS letter \gset
SELECT seqinbox_record_failure('A', 'a-9', 'order-6', 'again', 'value') > 0 AS recorded;
SELECT process, outcome, attempts FROM seqinbox_requeue(:letter);
SELECT count(*) AS records FROM sequenced_message WHERE idempotence_id = 'a-9';

-- one that was given up because its instance was closed
SELECT outcome, sequence_instance_id AS closed FROM seqinbox_receive('B', 'b-9', 'order-7', 'value') \gset
SELECT seqinbox_close(:closed);
SELECT idempotence_id, reason FROM letter;
SELECT process, outcome FROM letter, seqinbox_requeue(letter.id);
SELECT idempotence_id FROM seqinbox_next(:closed);

-- recording mode
SELECT seqinbox_record_failure('R', 'r-1', 'order-8', 'error', 'value') AS failed \gset
SELECT seqinbox_dead_letter(:failed, 'reason') AS letter \gset
SELECT process, outcome, sequence_instance_id AS recorded FROM seqinbox_requeue(:letter) \gset
\echo :process :outcome
SELECT idempotence_id FROM seqinbox_next(:recorded);

-- without its payload a message cannot come in again, and stays a dead letter
SELECT seqinbox_record_failure('A', 'a-10', 'order-9', 'error') AS failed \gset
SELECT seqinbox_dead_letter(:failed, 'reason') AS letter \gset
SELECT setval('dead_letter_sequence', 6000) AS letter \gset
UPDATE dead_letter SET id = :letter;
SELECT seqinbox_requeue(:letter);
\echo :SQLSTATE
SELECT idempotence_id, payload_buffered FROM letter;
DELETE FROM dead_letter;

-- nor can one whose type is no longer declared
SELECT outcome, id AS waiting FROM seqinbox_receive('B', 'b-10', 'order-10', 'value') \gset
SELECT seqinbox_dead_letter(:waiting, 'reason') AS letter \gset
DELETE FROM message_type_declaration WHERE message_type = 'B';
SELECT seqinbox_requeue(:letter);
\echo :SQLSTATE
SELECT idempotence_id, value FROM letter;
SELECT count(*) AS claims FROM sequential_inbox_idempotence WHERE idempotence_id = 'b-10';
-- declared again, in another sequence even
SELECT seqinbox_declare('{"sequences": [
    {"name": "Others", "retentionPeriod": "10 days", "messages": [{"type": "B"}]}]}');
SELECT process, outcome FROM seqinbox_requeue(:letter);
SELECT name, context_id FROM sequence_instance WHERE name = 'Others';

SET client_min_messages = warning;
DROP SCHEMA dead_letter CASCADE;
