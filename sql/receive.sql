-- seqinbox_receive: claim, look-up, decision and record in one call.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('receive');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = receive;
SELECT seqinbox_declare('{"sequences": [
    {"name": "Orders", "retentionPeriod": "3 days", "messages": [
        {"type": "Placed"},
        {"type": "Paid", "releaseCondition": {"predecessor": "Placed"}},
        {"type": "Shipped", "releaseCondition": {"predecessor": "Paid"}}]},
    {"name": "Others", "retentionPeriod": "1 hour", "messages": [{"type": "Other"}, {"type": "Last"}]}]}');
-- what is in the inbox
CREATE VIEW record AS
SELECT i.name, i.context_id, m.id, m.message_type AS type, m.idempotence_id AS message, m.state, m.attempts,
       m.last_error AS error,
       b.id IS NOT NULL AS buffered, convert_from(b.message_value, 'UTF8') AS value,
       EXISTS (SELECT FROM sequential_inbox_idempotence c
                WHERE c.message_type = m.message_type AND c.idempotence_id = m.idempotence_id
                  AND c.sequence_instance_id = i.id) AS claimed
  FROM sequenced_message m
  JOIN sequence_instance i ON i.id = m.sequence_instance_id
  LEFT JOIN buffered_message b ON b.sequenced_message_id = m.id
 ORDER BY m.id;

-- PROCESS: the first of its context; it is claimed and recorded, not buffered
CREATE TABLE answer AS SELECT * FROM seqinbox_receive('Placed', 'p-1', 'order-1', 'value');
SELECT process, outcome, a.id, i.name, i.context_id, attempts, release_due
  FROM answer a JOIN sequence_instance i ON i.id = a.sequence_instance_id;
SELECT sequence_instance_id AS instance FROM answer \gset
SELECT * FROM record;
SELECT context_id, state, retain_until - created_at AS retention, closed_at, remove_after, release_due_at,
       pending_action, created_in_recording_mode
  FROM sequence_instance WHERE name = 'Orders';

-- BUFFERED: its predecessor is missing; the instance's drain is due at once
BEGIN;
SELECT process, outcome, id, sequence_instance_id = :instance AS instance, attempts, release_due
  FROM seqinbox_receive('Shipped', 's-1', 'order-1', 'value', 'key', '{h,h,i}', '{v,NULL,""}', 'orders', 'main',
                        '00112233-4455-6677-8899-aabbccddeeff',
                        '00-00000000000000010000000000000002-0000000000000003-01');
SELECT release_due_at = now() AS due_now FROM sequence_instance WHERE id = :instance;
COMMIT;
SELECT * FROM record;
SELECT topic, cluster_name, sequenced_message_id AS uuid, trace_id_high, trace_id, span_id, parent_span_id, sampled,
       created_at BETWEEN now() - interval '1 hour' AND now() AS created
  FROM sequenced_message WHERE idempotence_id = 's-1';
SELECT header_name, header_value FROM message_header ORDER BY id;
SELECT count(*) FROM buffered_message WHERE sequence_instance_id = :instance;
-- without a topic, a cluster and a uuid
SELECT topic, cluster_name, sequenced_message_id IS NOT NULL AS uuid, trace_id, sampled
  FROM sequenced_message WHERE idempotence_id = 'p-1';

-- DUPLICATE: of a processed message, and of one that waits; nothing changes
CREATE TABLE before AS SELECT * FROM record;
SELECT process, outcome, id, sequence_instance_id = :instance AS instance, attempts, release_due
  FROM seqinbox_receive('Placed', 'p-1', 'order-1', 'other value');
SELECT process, outcome, id, sequence_instance_id = :instance AS instance, attempts, release_due
  FROM seqinbox_receive('Shipped', 's-1', 'order-1', 'other value', 'other key', '{x}', '{y}', 'other topic');
-- the context has no part in the key
SELECT outcome, id FROM seqinbox_receive('Shipped', 's-1', 'order-2', 'other value');
SELECT count(*) FROM (TABLE before EXCEPT TABLE record UNION ALL (TABLE record EXCEPT TABLE before)) AS difference;
SELECT topic, header_name FROM sequenced_message m JOIN buffered_message b ON b.sequenced_message_id = m.id
  JOIN message_header h ON h.buffered_message_id = b.id;
-- once it has been handed out, too
SELECT outcome, release_due FROM seqinbox_receive('Paid', 'd-1', 'order-1', 'value');
SELECT id FROM seqinbox_next(:instance);
SELECT outcome, id FROM seqinbox_receive('Shipped', 's-1', 'order-1', 'value');
-- of a claim without any record
SELECT seqinbox_claim('Placed', 'claimed');
SELECT process, outcome, id, sequence_instance_id, attempts, release_due
  FROM seqinbox_receive('Placed', 'claimed', 'order-1', 'value');
-- within one transaction and one statement
BEGIN;
SELECT outcome FROM seqinbox_receive('Placed', 'twice', 'twice', 'value');
SELECT outcome FROM seqinbox_receive('Placed', 'twice', 'twice', 'value');
COMMIT;
SELECT id, outcome FROM unnest('{same,same,other}'::text[]) AS message, seqinbox_receive('Placed', message, 'twice', 'value');
-- another type, or another letter of the ID, is another message
SELECT (seqinbox_receive('Other', 'p-1', 'order-1', 'value')).outcome AS other_type,
       (seqinbox_receive('Placed', 'P-1', 'order-1', 'value')).outcome AS upper_case,
       (seqinbox_receive('Placed', 'p-1 ', 'order-1', 'value')).outcome AS trailing_blank;

-- a rollback undoes claim and record
BEGIN;
SELECT outcome FROM seqinbox_receive('Placed', 'p-3', 'order-3', 'value');
ROLLBACK;
SELECT count(*) AS instances FROM sequence_instance WHERE context_id = 'order-3';
BEGIN;
SAVEPOINT s;
SELECT outcome FROM seqinbox_receive('Placed', 'p-3', 'order-3', 'value');
ROLLBACK TO s;
SELECT outcome FROM seqinbox_receive('Placed', 'p-3', 'order-3', 'value');
COMMIT;
SELECT outcome FROM seqinbox_receive('Placed', 'p-3', 'order-3', 'value');

-- a message that failed is processed again, with its attempts counted
SELECT seqinbox_record_failure('Placed', 'p-4', 'order-4', 'no stock') AS failed;
SELECT seqinbox_record_failure('Placed', 'p-4', 'order-4', 'no stock yet') AS failed;
BEGIN;
SELECT process, outcome, id, attempts, release_due FROM seqinbox_receive('Placed', 'p-4', 'order-4', 'value');
ROLLBACK;
SELECT process, outcome, id, attempts, release_due FROM seqinbox_receive('Placed', 'p-4', 'order-4', 'value');
SELECT * FROM record WHERE message = 'p-4';
SELECT process, outcome, id, attempts, release_due FROM seqinbox_receive('Placed', 'p-4', 'order-4', 'value');
-- when its condition does not hold, it is buffered again: as it comes now
SELECT seqinbox_record_failure('Paid', 'd-5', 'order-5', 'error', 'old value', 'old key', '{old}', '{old}', 'old') AS failed;
SELECT process, outcome, id, attempts, release_due
  FROM seqinbox_receive('Paid', 'd-5', 'order-5', 'new value', NULL, '{new,new}', '{1,2}', 'new');
SELECT * FROM record WHERE message = 'd-5';
SELECT topic, message_key, message_value, header_name, header_value
  FROM sequenced_message m JOIN buffered_message b ON b.sequenced_message_id = m.id
  JOIN message_header h ON h.buffered_message_id = b.id WHERE m.idempotence_id = 'd-5' ORDER BY h.id;
-- also in another context than the one in which it failed
SELECT seqinbox_record_failure('Other', 'o-5', 'order-5', 'error', 'value') AS failed;
SELECT process, outcome, id, attempts FROM seqinbox_receive('Other', 'o-5', 'order-6', 'value');
SELECT * FROM record WHERE message = 'o-5';

-- UNSEQUENCED: without a context ID it is handled directly; nothing is
-- stored, so it is handled again
SELECT * FROM seqinbox_receive('Shipped', 'u-1', NULL, 'value');
SELECT * FROM seqinbox_receive('Shipped', 'u-1', NULL, 'value');
SELECT * FROM seqinbox_receive('Placed', 'p-1', NULL, 'value');
SELECT count(*) FROM record WHERE message = 'u-1';
-- its type has to be declared all the same
SELECT * FROM seqinbox_receive('Unknown', 'u-1', NULL, 'value');
\echo :SQLSTATE
SELECT seqinbox_claim('Shipped', 'u-1') AS still_free;

-- release_due: after PROCESS, when messages wait in the same instance
SELECT outcome, release_due FROM seqinbox_receive('Placed', 'p-7', 'order-7', 'value');
SELECT outcome, release_due FROM seqinbox_receive('Shipped', 's-7', 'order-7', 'value');
SELECT count(*) FROM sequence_instance i, LATERAL seqinbox_next(i.id) WHERE i.context_id = 'order-7';
SELECT release_due_at FROM sequence_instance WHERE context_id = 'order-7';
SELECT outcome, release_due FROM seqinbox_receive('Placed', 'p-7b', 'order-7', 'value');
SELECT release_due_at <= clock_timestamp() AS due FROM sequence_instance WHERE context_id = 'order-7';
SELECT outcome, release_due FROM seqinbox_receive('Shipped', 's-7', 'order-7', 'value');
-- a message that failed waits, once its retry has come due
SELECT outcome, release_due FROM seqinbox_receive('Placed', 'p-8', 'order-8', 'value');
SELECT seqinbox_record_failure('Paid', 'd-8', 'order-8', 'error', 'value', retry_after => '1 hour') > 0 AS failed;
SELECT outcome, release_due FROM seqinbox_receive('Placed', 'p-8b', 'order-8', 'value');
UPDATE sequenced_message SET retry_at = now() - interval '1 second' WHERE idempotence_id = 'd-8';
SELECT outcome, release_due FROM seqinbox_receive('Placed', 'p-8c', 'order-8', 'value');
-- an earlier moment stands
UPDATE sequence_instance SET release_due_at = '-infinity' WHERE context_id = 'order-8';
SELECT outcome, release_due FROM seqinbox_receive('Shipped', 's-8', 'order-8', 'value');
SELECT release_due_at FROM sequence_instance WHERE context_id = 'order-8';

-- an instance that housekeeping removed begins anew, its messages too
SELECT outcome FROM seqinbox_receive('Other', 'o-9', 'order-9', 'value');
DELETE FROM sequenced_message WHERE idempotence_id = 'o-9';
DELETE FROM sequence_instance WHERE context_id = 'order-9';
SELECT outcome FROM seqinbox_receive('Other', 'o-9', 'order-9', 'value');

-- the stricter isolation levels
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT outcome FROM seqinbox_receive('Paid', 'd-10', 'order-10', 'value');
SELECT outcome, release_due FROM seqinbox_receive('Placed', 'p-10', 'order-10', 'value');
SELECT outcome FROM seqinbox_receive('Placed', 'p-10', 'order-10', 'value');
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT outcome, release_due FROM seqinbox_receive('Shipped', 's-10', 'order-10', 'value');
SELECT outcome FROM seqinbox_receive('Placed', 'p-10', 'order-10', 'value');
COMMIT;

-- the longest type, ID and context
SELECT seqinbox_declare(jsonb_build_object('sequences', jsonb_build_array(jsonb_build_object(
           'name', repeat('s', 512), 'retentionPeriod', '1 day',
           'messages', jsonb_build_array(jsonb_build_object('type', repeat('t', 512)))))));
SELECT string_agg(md5(n::text), '') AS longest FROM generate_series(1, 64) AS n \gset
SELECT octet_length(:'longest') AS bytes,
       (seqinbox_receive(repeat('t', 512), :'longest', :'longest', 'value')).outcome,
       (seqinbox_receive(repeat('t', 512), :'longest', :'longest', 'value')).outcome AS again;

-- what may be wrong, and that it leaves nothing behind
SELECT (SELECT count(*) FROM sequenced_message) AS messages, (SELECT count(*) FROM sequence_instance) AS instances,
       (SELECT count(*) FROM sequential_inbox_idempotence) AS claims \gset
SELECT * FROM seqinbox_receive(NULL, 'x-1', 'order-x', 'value');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive('Placed', NULL, 'order-x', 'value');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive('', 'x-1', 'order-x', 'value');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive('Placed', '', 'order-x', 'value');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive('Placed', 'x-1', '', 'value');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive(repeat('x', 513), 'x-1', 'order-x', 'value');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive('Placed', repeat('x', 2049), 'order-x', 'value');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive('Placed', 'x-1', repeat('x', 2049), 'value');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive('Unknown', 'x-1', 'order-x', 'value');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive('placed', 'x-1', 'order-x', 'value');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive('seqinbox.idempotence', 'x-1', 'order-x', 'value');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive('Placed', 'x-1', 'order-x', 'value', NULL, '{a,b}', '{c}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive('Placed', 'x-1', 'order-x', 'value', NULL, '{a}', NULL);
\echo :SQLSTATE
SELECT * FROM seqinbox_receive('Placed', 'x-1', 'order-x', 'value', NULL, NULL, '{c}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive('Placed', 'x-1', 'order-x', 'value', NULL, '{a,NULL}', '{c,d}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive('Placed', 'x-1', 'order-x', 'value', NULL, '{{a,b}}', '{{c,d}}');
\echo :SQLSTATE
BEGIN READ ONLY;
SELECT * FROM seqinbox_receive('Placed', 'x-1', 'order-x', 'value');
\echo :SQLSTATE
ROLLBACK;
-- also of a duplicate, and without a context ID
\set VERBOSITY sqlstate
BEGIN READ ONLY;
SELECT * FROM seqinbox_receive('Placed', 'p-1', 'order-1', 'value');
ROLLBACK;
BEGIN READ ONLY;
SELECT * FROM seqinbox_receive('Placed', 'u-1', NULL, 'value');
ROLLBACK;
\set VERBOSITY default
SELECT (SELECT count(*) FROM sequenced_message) - :messages AS messages,
       (SELECT count(*) FROM sequence_instance) - :instances AS instances,
       (SELECT count(*) FROM sequential_inbox_idempotence) - :claims AS claims;
-- never wrong: a malformed traceparent
SELECT outcome FROM seqinbox_receive('Placed', 'x-1', 'order-x', 'value', traceparent => 'nonsense');
SELECT trace_id, span_id, sampled FROM sequenced_message WHERE idempotence_id = 'x-1';

-- no inbox
SET search_path = receive_missing;
SELECT * FROM seqinbox_receive('Placed', 'x-1', 'order-x', 'value');
\echo :SQLSTATE
RESET search_path;

SET client_min_messages = warning;
DROP SCHEMA receive CASCADE;
