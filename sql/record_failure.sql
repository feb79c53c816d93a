-- seqinbox_record_failure: a message failed on its first delivery, which was
-- rolled back.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('record_failure');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = record_failure;
SET timezone = 'UTC';
INSERT INTO sequence_declaration (name, retention_period) VALUES ('Orders', '2 days'), ('Others', '1 hour');
INSERT INTO message_type_declaration (message_type, sequence_name)
VALUES ('OrderPlaced', 'Orders'), ('OrderShipped', 'Orders'), ('Other', 'Others');
CREATE VIEW failure AS
SELECT m.id, m.message_type, m.idempotence_id, i.name, i.context_id, m.state, m.attempts, m.last_error,
       convert_from(b.message_value, 'UTF8') AS value, b.id IS NOT NULL AS buffered
  FROM sequenced_message m
  JOIN sequence_instance i ON i.id = m.sequence_instance_id
  LEFT JOIN buffered_message b ON b.sequenced_message_id = m.id
 ORDER BY m.id;

-- the instance is opened, the failure recorded, no claim left
SELECT seqinbox_record_failure('OrderPlaced', 'm-1', 'order-1', 'no stock') AS id;
SELECT * FROM failure;
SELECT state, retain_until - created_at AS retention, release_due_at
  FROM sequence_instance WHERE name = 'Orders';
SELECT count(*) AS claims FROM sequential_inbox_idempotence;

-- each failure counts; the payload is kept if it is given
SELECT seqinbox_record_failure('OrderPlaced', 'm-1', 'order-1', 'no stock yet', 'value', 'key',
                               '{h,h}', '{v,NULL}', 'orders', 'main', '00112233-4455-6677-8899-aabbccddeeff',
                               '00-00000000000000010000000000000002-0000000000000003-01') AS id;
SELECT * FROM failure;
SELECT topic, cluster_name, sequenced_message_id AS uuid, trace_id_high, trace_id, span_id, sampled
  FROM sequenced_message;
SELECT header_name, convert_from(header_value, 'UTF8') AS value FROM message_header ORDER BY id;
SELECT seqinbox_record_failure('OrderPlaced', 'm-1', 'order-1', 'still no stock') AS id;
SELECT * FROM failure;
SELECT seqinbox_record_failure('OrderPlaced', 'm-1', 'order-1', 'never any stock', 'other value') AS id;
SELECT * FROM failure;

-- the same ID of another type, and another context
SELECT seqinbox_record_failure('OrderShipped', 'm-1', 'order-1', 'error') AS id;
SELECT seqinbox_record_failure('OrderShipped', 'm-2', 'order-2', 'error') AS id;
SELECT seqinbox_record_failure('Other', 'm-1', 'order-1', 'error') AS id;
SELECT * FROM failure;
SELECT count(*) AS instances FROM sequence_instance WHERE name IN ('Orders', 'Others');

-- an existing instance is used, and a redelivery can claim
SELECT seqinbox_open_instance('Orders', 'order-1') AS instance \gset
SELECT seqinbox_claim('OrderPlaced', 'm-1', :instance);
SELECT state, attempts FROM seqinbox_lookup('OrderPlaced', 'm-1');
SELECT seqinbox_store('OrderPlaced', 'm-1', :instance, 'PROCESSED') AS id;

-- now that it is claimed, and processed, there is nothing to fail
SELECT seqinbox_record_failure('OrderPlaced', 'm-1', 'order-1', 'error');
\echo :SQLSTATE
DELETE FROM sequential_inbox_idempotence;
SELECT seqinbox_record_failure('OrderPlaced', 'm-1', 'order-1', 'error');
\echo :SQLSTATE
SELECT seqinbox_store('OrderPlaced', 'waits', :instance, 'WAITING', 'value') AS id;
SELECT seqinbox_record_failure('OrderPlaced', 'waits', 'order-1', 'error');
\echo :SQLSTATE
SELECT seqinbox_claim('OrderPlaced', 'm-1'), seqinbox_claim('OrderPlaced', 'waits');

-- the transaction's own claim has to be rolled back first
BEGIN;
SELECT seqinbox_claim('OrderPlaced', 'm-3', :instance);
\set VERBOSITY sqlstate
SELECT seqinbox_record_failure('OrderPlaced', 'm-3', 'order-1', 'error');
\set VERBOSITY default
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT seqinbox_claim('OrderPlaced', 'm-3', :instance);
ROLLBACK TO s;
SELECT seqinbox_record_failure('OrderPlaced', 'm-3', 'order-1', 'error') > 0 AS recorded;
SELECT seqinbox_claim('OrderPlaced', 'm-3', :instance);
COMMIT;

-- of several records that all failed, the newest
SELECT seqinbox_record_failure('OrderPlaced', 'twice', 'order-1', 'one') AS first \gset
INSERT INTO sequenced_message (id, message_type, cluster_name, topic, sequenced_message_id,
                               idempotence_id, state, created_at, sequence_instance_id)
SELECT 7000, message_type, '', '', gen_random_uuid(), idempotence_id, state, created_at + interval '1 day',
       sequence_instance_id
  FROM sequenced_message WHERE id = :first;
SELECT seqinbox_record_failure('OrderPlaced', 'twice', 'order-1', 'two') AS id;

-- retry_after
SELECT seqinbox_open_instance('Orders', 'retries') AS retries \gset
SELECT clock_timestamp() AS before \gset
SELECT seqinbox_record_failure('OrderPlaced', 'retry', 'retries', 'error', 'value', retry_after => '1 hour') AS retry \gset
SELECT retry_at BETWEEN :'before'::timestamptz + interval '1 hour' AND clock_timestamp() + interval '1 hour' AS in_time,
       retry_at = release_due_at AS due
  FROM sequenced_message m JOIN sequence_instance i ON i.id = m.sequence_instance_id WHERE m.id = :retry;
-- the payload that an earlier delivery left will do
UPDATE sequence_instance SET release_due_at = NULL WHERE id = :retries;
SELECT seqinbox_record_failure('OrderPlaced', 'retry', 'retries', 'error', retry_after => '2 hours') = :retry AS same;
SELECT retry_at > :'before'::timestamptz + interval '90 minutes' AS later, retry_at = release_due_at AS due
  FROM sequenced_message m JOIN sequence_instance i ON i.id = m.sequence_instance_id WHERE m.id = :retry;
-- an earlier moment stands
UPDATE sequence_instance SET release_due_at = '-infinity' WHERE id = :retries;
SELECT seqinbox_record_failure('OrderPlaced', 'retry', 'retries', 'error', retry_after => '0') = :retry AS same;
SELECT retry_at < clock_timestamp() AS now, release_due_at
  FROM sequenced_message m JOIN sequence_instance i ON i.id = m.sequence_instance_id WHERE m.id = :retry;
-- not again by itself
SELECT seqinbox_record_failure('OrderPlaced', 'retry', 'retries', 'error') = :retry AS same;
SELECT retry_at FROM sequenced_message WHERE id = :retry;

-- no payload, no retry, and nothing left of the attempt
SELECT setval('sequenced_message_sequence', 8000, false);
SELECT seqinbox_record_failure('OrderPlaced', 'no payload', 'order-9', 'error', retry_after => '1 hour');
\echo :SQLSTATE
SELECT (SELECT count(*) FROM sequence_instance WHERE context_id = 'order-9') AS instances,
       (SELECT count(*) FROM sequenced_message WHERE idempotence_id = 'no payload') AS messages,
       (SELECT count(*) FROM sequential_inbox_idempotence WHERE idempotence_id = 'no payload') AS claims;
-- a tombstone is a payload only by its key or headers
SELECT seqinbox_record_failure('OrderPlaced', 'key', 'order-9', 'error', NULL, 'key', retry_after => '1 hour') > 0 AS recorded;

-- types that are not declared, the reserved sequence among them
SELECT seqinbox_record_failure('Unknown', 'm-1', 'order-1', 'error');
\echo :SQLSTATE
SELECT seqinbox_record_failure('seqinbox.idempotence', 'm-1', 'order-1', 'error');
\echo :SQLSTATE
SELECT seqinbox_record_failure('orderplaced', 'm-1', 'order-1', 'error');
\echo :SQLSTATE
-- a declaration counts from the next call on
INSERT INTO message_type_declaration (message_type, sequence_name) VALUES ('Unknown', 'Others');
SELECT seqinbox_record_failure('Unknown', 'm-1', 'order-1', 'error') > 0 AS recorded;
DELETE FROM message_type_declaration WHERE message_type = 'Unknown';
SELECT seqinbox_record_failure('Unknown', 'm-1', 'order-1', 'error');
\echo :SQLSTATE

-- what else may be wrong
SELECT seqinbox_record_failure(NULL, 'm-1', 'order-1', 'error');
\echo :SQLSTATE
SELECT seqinbox_record_failure('OrderPlaced', NULL, 'order-1', 'error');
\echo :SQLSTATE
SELECT seqinbox_record_failure('OrderPlaced', 'm-1', NULL, 'error');
\echo :SQLSTATE
SELECT seqinbox_record_failure('OrderPlaced', '', 'order-1', 'error');
\echo :SQLSTATE
SELECT seqinbox_record_failure('OrderPlaced', 'm-1', '', 'error');
\echo :SQLSTATE
SELECT seqinbox_record_failure('OrderPlaced', 'm-1', repeat('x', 2049), 'error');
\echo :SQLSTATE
SELECT seqinbox_record_failure('OrderPlaced', 'm-9', 'order-1', 'error', 'value', NULL, '{a,b}', '{c}');
\echo :SQLSTATE
SELECT seqinbox_record_failure('OrderPlaced', 'm-9', 'order-1', 'error', 'value', NULL, '{NULL}', '{c}');
\echo :SQLSTATE
SELECT seqinbox_record_failure('OrderPlaced', 'm-9', 'order-1', 'error', 'value', retry_after => '-1 second');
\echo :SQLSTATE
BEGIN READ ONLY;
SELECT seqinbox_record_failure('OrderPlaced', 'm-9', 'order-1', 'error');
\echo :SQLSTATE
ROLLBACK;
SELECT count(*) FROM seqinbox_lookup('OrderPlaced', 'm-9');

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA record_failure CASCADE;
