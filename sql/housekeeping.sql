-- seqinbox_housekeeping: closes, marks and removes instances whose time has
-- come, and nothing else.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('housekeeping');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = housekeeping;
SET timezone = 'UTC';
SELECT seqinbox_declare('{"sequences": [
    {"name": "Orders", "retentionPeriod": "10 days", "messages": [
        {"type": "A"}, {"type": "B", "releaseCondition": {"predecessor": "A"}}]},
    {"name": "Recorded", "retentionPeriod": "10 days", "sequencingStartTimestamp": "infinity",
     "messages": [{"type": "R"}, {"type": "S", "releaseCondition": {"predecessor": "R"}}]}]}');

-- lets time pass for one instance, and for the claims that it has now
CREATE FUNCTION let_pass(context text, duration interval) RETURNS void LANGUAGE sql AS $$
    UPDATE sequential_inbox_idempotence SET created_at = created_at - duration
     WHERE sequence_instance_id IN (SELECT id FROM sequence_instance WHERE context_id = context);
    UPDATE sequence_instance SET created_at = created_at - duration, retain_until = retain_until - duration,
           remove_after = remove_after - duration
     WHERE context_id = context;
$$;
CREATE VIEW instance AS
SELECT i.context_id, i.state, i.closed_at IS NOT NULL AS closed, i.remove_after - i.retain_until AS delay,
       (SELECT count(*) FROM sequenced_message m WHERE m.sequence_instance_id = i.id) AS messages,
       (SELECT count(*) FROM sequential_inbox_idempotence c WHERE c.sequence_instance_id = i.id) AS claims
  FROM sequence_instance i
 WHERE i.name <> 'seqinbox.idempotence'
 ORDER BY i.context_id;
CREATE VIEW payloads AS
SELECT (SELECT count(*) FROM buffered_message) AS buffered, (SELECT count(*) FROM message_header) AS headers;
CREATE VIEW letter AS
SELECT context_id, message_type, idempotence_id, state, attempts, last_error, reason, payload_buffered,
       convert_from(message_value, 'UTF8') AS value
  FROM dead_letter ORDER BY id;

-- an empty inbox
CALL seqinbox_housekeeping();

-- CLOSED: until retain_until, claims answer duplicates; then the instance goes
-- with its messages and claims, and a duplicate is a new message
SELECT outcome FROM seqinbox_receive('A', 'a-1', 'closed', 'v');
SELECT outcome FROM seqinbox_receive('B', 'b-1', 'closed', 'v');
SELECT let_pass('closed', '10 days -10 minutes');
CALL seqinbox_housekeeping();
SELECT outcome FROM seqinbox_receive('A', 'a-1', 'closed', 'v');
SELECT * FROM instance;
SELECT let_pass('closed', '10 minutes');
CALL seqinbox_housekeeping();
SELECT * FROM instance;
SELECT outcome FROM seqinbox_receive('A', 'a-1', 'closed', 'v');
SELECT count(*) AS letters FROM dead_letter;
DELETE FROM sequenced_message;
DELETE FROM sequence_instance WHERE name = 'Orders';

-- a failed message of a CLOSED instance becomes a dead letter, payload and all
SELECT outcome FROM seqinbox_receive('A', 'a-1', 'closed', 'v');
SELECT outcome FROM seqinbox_receive('B', 'b-1', 'closed', 'v');
SELECT seqinbox_record_failure('A', 'a-2', 'closed', 'no stock', 'value', 'key', '{h,h}', '{v,NULL}') > 0 AS recorded;
SELECT * FROM payloads;
SELECT let_pass('closed', '10 days');
CALL seqinbox_housekeeping();
SELECT * FROM instance;
SELECT * FROM payloads;
SELECT * FROM letter;
DELETE FROM dead_letter;

-- OPEN and complete, as two last messages in flight may leave it: closed once
-- retain_until has passed, and removed when its claims are old enough
SELECT outcome FROM seqinbox_receive('A', 'a-1', 'complete', 'v');
SELECT outcome FROM seqinbox_receive('B', 'b-1', 'complete', 'v');
UPDATE sequence_instance SET state = 'OPEN', closed_at = NULL WHERE context_id = 'complete';
SELECT let_pass('complete', '10 days -10 minutes');
CALL seqinbox_housekeeping();
SELECT * FROM instance;
SELECT let_pass('complete', '10 minutes');
UPDATE sequential_inbox_idempotence SET created_at = now() WHERE idempotence_id = 'b-1';
CALL seqinbox_housekeeping();
SELECT * FROM instance;
CALL seqinbox_housekeeping();
UPDATE sequential_inbox_idempotence SET created_at = now() - interval '10 days';
CALL seqinbox_housekeeping();
SELECT * FROM instance;

-- ... both in one run, if they are old enough already
SELECT outcome FROM seqinbox_receive('A', 'a-1', 'complete', 'v');
SELECT outcome FROM seqinbox_receive('B', 'b-1', 'complete', 'v');
UPDATE sequence_instance SET state = 'OPEN', closed_at = NULL WHERE context_id = 'complete';
SELECT let_pass('complete', '10 days');
CALL seqinbox_housekeeping();
SELECT * FROM instance;

-- OPEN and not complete: marked, for retain_until and the delay, and kept until
-- then
SELECT outcome FROM seqinbox_receive('A', 'a-1', 'lacks B', 'v');
SELECT outcome FROM seqinbox_receive('B', 'b-2', 'lacks A', 'v');
SELECT let_pass(context_id, '10 days -10 minutes') FROM instance;
CALL seqinbox_housekeeping();
SELECT * FROM instance;
SELECT let_pass(context_id, '10 minutes') FROM instance;
CALL seqinbox_housekeeping('3 days 04:05:06');
SELECT * FROM instance;
-- a later run with another delay changes nothing
CALL seqinbox_housekeeping('5 days');
SELECT * FROM instance;
SELECT let_pass(context_id, '3 days 03:55:06') FROM instance;
CALL seqinbox_housekeeping();
SELECT outcome FROM seqinbox_receive('B', 'b-2', 'lacks A', 'v');
SELECT * FROM instance;
SELECT * FROM payloads;
SELECT let_pass(context_id, '10 minutes') FROM instance;
CALL seqinbox_housekeeping();
SELECT * FROM instance;
SELECT * FROM payloads;
SELECT * FROM letter;
DELETE FROM dead_letter;

-- the default delay is a day
SELECT outcome FROM seqinbox_receive('A', 'a-1', 'default', 'v');
SELECT let_pass('default', '10 days');
CALL seqinbox_housekeeping();
SELECT * FROM instance;
SELECT let_pass('default', '1 day');
CALL seqinbox_housekeeping();
SELECT * FROM instance;

-- no delay: removed in the same run
SELECT outcome FROM seqinbox_receive('B', 'b-1', 'no delay', 'v');
SELECT let_pass('no delay', '10 days');
CALL seqinbox_housekeeping('0');
SELECT * FROM instance;
SELECT * FROM letter;
DELETE FROM dead_letter;

-- complete, but with a message to be released: not closed
SELECT outcome FROM seqinbox_receive('A', 'a-1', 'retry', 'v');
SELECT seqinbox_record_failure('B', 'b-1', 'retry', 'error', 'v', retry_after => '0') > 0 AS recorded;
SELECT outcome FROM seqinbox_receive('B', 'b-2', 'retry', 'v');
SELECT let_pass('retry', '10 days');
CALL seqinbox_housekeeping();
SELECT * FROM instance;
-- it can still be released
SELECT message_type, idempotence_id, attempts FROM seqinbox_next();
SELECT let_pass('retry', '10 days');
CALL seqinbox_housekeeping('1 year');
CALL seqinbox_housekeeping('1 year');
SELECT * FROM instance;

-- a dead letter keeps all that is known of the message
SELECT outcome FROM seqinbox_receive('B', 'b-1', 'letters', 'value', 'key', '{second,first,second}', '{x,NULL,""}',
    'orders', 'main', '00112233-4455-6677-8899-aabbccddeeff',
    '00-0000000000000001fedcba9876543210-0000000000000003-01');
SELECT outcome FROM seqinbox_receive('B', 'tombstone', 'letters', NULL, 'key');
SELECT outcome FROM seqinbox_receive('B', 'empty', 'letters', '', header_names => '{}', header_values => '{}');
SELECT seqinbox_record_failure('A', 'failed', 'letters', 'first', 'value') > 0 AS recorded;
SELECT seqinbox_record_failure('A', 'failed', 'letters', 'second', 'value') > 0 AS recorded;
SELECT seqinbox_record_failure('A', 'no payload', 'letters', 'error') > 0 AS recorded;
UPDATE sequenced_message SET parent_span_id = 4 WHERE idempotence_id = 'b-1';
CREATE TABLE before AS
SELECT m.*, b.id AS buffered_id, b.message_key, b.message_value
  FROM sequenced_message m LEFT JOIN buffered_message b ON b.sequenced_message_id = m.id;
SELECT * FROM payloads;
SELECT let_pass('letters', '11 days');
SELECT clock_timestamp() AS started \gset
CALL seqinbox_housekeeping('1 day');
SELECT * FROM instance;
SELECT * FROM payloads;
SELECT * FROM letter;
SELECT idempotence_id, message_key, message_value, header_names, header_values FROM dead_letter ORDER BY id;
SELECT topic, cluster_name, sequenced_message_id, trace_id_high, trace_id, span_id, parent_span_id, trace_id_string,
       sampled
  FROM dead_letter WHERE idempotence_id = 'b-1';
SELECT count(*) AS same
  FROM dead_letter d JOIN before b USING (message_type, idempotence_id, cluster_name, topic, sequenced_message_id,
                                          state, created_at, attempts)
 WHERE (d.trace_id_high, d.trace_id, d.span_id, d.parent_span_id, d.trace_id_string, d.sampled, d.last_error,
        d.message_key, d.message_value, d.payload_buffered)
       IS NOT DISTINCT FROM
       (b.trace_id_high, b.trace_id, b.span_id, b.parent_span_id, b.trace_id_string, b.sampled, b.last_error,
        b.message_key, b.message_value, b.buffered_id IS NOT NULL)
   AND d.sequence_name = 'Orders' AND d.context_id = 'letters'
   AND d.removed_at BETWEEN :'started' AND clock_timestamp();
-- the claims went too: a redelivery is a new message
SELECT outcome FROM seqinbox_receive('B', 'b-1', 'letters', 'value');
DELETE FROM dead_letter;
DELETE FROM buffered_message;
DELETE FROM sequenced_message;
DELETE FROM sequence_instance WHERE name = 'Orders';

-- an instance that was created in recording mode is removed without
SELECT outcome FROM seqinbox_receive('R', 'r-1', 'recorded', 'v');
SELECT seqinbox_record_failure('S', 's-1', 'recorded', 'error', 'v', NULL, '{h}', '{v}') > 0 AS recorded;
SELECT * FROM payloads;
SELECT let_pass('recorded', '10 days');
CALL seqinbox_housekeeping('0');
SELECT * FROM instance;
SELECT * FROM payloads;
SELECT count(*) AS letters FROM dead_letter;

-- the newest claim counts: not removed before it is as old as the instance's
-- own retention, be the instance CLOSED or OPEN
SELECT outcome FROM seqinbox_receive('A', 'a-1', 'closed', 'v');
SELECT outcome FROM seqinbox_receive('B', 'b-1', 'closed', 'v');
SELECT outcome FROM seqinbox_receive('A', 'a-2', 'open', 'v');
SELECT let_pass(context_id, '11 days') FROM instance;
SELECT outcome FROM seqinbox_receive('A', 'late-1', 'closed', 'v');
SELECT outcome FROM seqinbox_receive('B', 'late-2', 'open', 'v');
UPDATE sequence_instance SET state = 'OPEN', closed_at = NULL WHERE context_id = 'open';
UPDATE sequenced_message SET state = 'WAITING' WHERE idempotence_id = 'late-2';
CALL seqinbox_housekeeping('0');
SELECT * FROM instance;
SELECT outcome FROM seqinbox_receive('A', 'a-1', 'closed', 'v');
UPDATE sequential_inbox_idempotence SET created_at = now() - interval '10 days -10 minutes'
 WHERE idempotence_id ~ 'late';
CALL seqinbox_housekeeping('0');
SELECT * FROM instance;
SELECT count(*) AS letters FROM dead_letter;
UPDATE sequential_inbox_idempotence SET created_at = now() - interval '10 days' WHERE idempotence_id = 'late-2';
CALL seqinbox_housekeeping('0');
SELECT * FROM instance;
UPDATE sequential_inbox_idempotence SET created_at = now() - interval '10 days' WHERE idempotence_id = 'late-1';
CALL seqinbox_housekeeping('0');
SELECT * FROM instance;
SELECT * FROM letter;
DELETE FROM dead_letter;
-- ... not that of the declaration, nor of another instance
SELECT outcome FROM seqinbox_receive('A', 'a-1', 'short', 'v');
SELECT outcome FROM seqinbox_receive('A', 'a-2', 'long', 'v');
UPDATE sequence_instance SET created_at = now() - interval '20 days', retain_until = now() - interval '19 days',
       state = 'CLOSED'
 WHERE context_id = 'short';
UPDATE sequence_instance SET created_at = now() - interval '40 days', retain_until = now() - interval '20 days',
       state = 'CLOSED'
 WHERE context_id = 'long';
UPDATE sequential_inbox_idempotence SET created_at = now() - interval '15 days';
CALL seqinbox_housekeeping();
SELECT * FROM instance;
UPDATE sequential_inbox_idempotence SET created_at = now() - interval '20 days';
CALL seqinbox_housekeeping();
SELECT * FROM instance;
-- an instance without claims has none to wait for
INSERT INTO sequence_instance (name, context_id, state, created_at, retain_until)
VALUES ('Orders', 'no claims', 'CLOSED', now() - interval '1 hour', now());
CALL seqinbox_housekeeping();
SELECT * FROM instance;

-- an operator extends the retention: before the instance is marked ...
SELECT outcome FROM seqinbox_receive('B', 'b-1', 'extended', 'v');
SELECT let_pass('extended', '11 days');
UPDATE sequence_instance SET retain_until = now() + interval '10 minutes' WHERE context_id = 'extended';
CALL seqinbox_housekeeping('0');
SELECT * FROM instance;
-- ... after that: what counts is the new time, and the delay from then on
SELECT let_pass('extended', '10 minutes');
CALL seqinbox_housekeeping();
SELECT * FROM instance;
UPDATE sequence_instance SET retain_until = now() + interval '30 days' WHERE context_id = 'extended';
SELECT let_pass('extended', '30 days -10 minutes');
CALL seqinbox_housekeeping();
SELECT context_id, remove_after < now() AS once_marked FROM sequence_instance WHERE context_id = 'extended';
SELECT let_pass('extended', '10 minutes');
CALL seqinbox_housekeeping();
SELECT * FROM instance;
SELECT let_pass('extended', '1 day');
UPDATE sequential_inbox_idempotence SET created_at = '2000-01-01';
CALL seqinbox_housekeeping();
SELECT * FROM instance;
SELECT * FROM letter;
DELETE FROM dead_letter;
-- ... and of a CLOSED one
SELECT outcome FROM seqinbox_receive('A', 'a-1', 'extended', 'v');
SELECT outcome FROM seqinbox_receive('B', 'b-1', 'extended', 'v');
SELECT let_pass('extended', '10 days');
UPDATE sequence_instance SET retain_until = retain_until + interval '10 minutes' WHERE context_id = 'extended';
CALL seqinbox_housekeeping();
SELECT outcome FROM seqinbox_receive('A', 'a-1', 'extended', 'v');
SELECT let_pass('extended', '10 minutes');
CALL seqinbox_housekeeping();
SELECT * FROM instance;
-- shortening works as well
SELECT outcome FROM seqinbox_receive('A', 'a-1', 'shortened', 'v');
SELECT outcome FROM seqinbox_receive('B', 'b-1', 'shortened', 'v');
UPDATE sequence_instance SET retain_until = created_at WHERE context_id = 'shortened';
CALL seqinbox_housekeeping();
SELECT * FROM instance;
-- for ever, and not at all
SELECT outcome FROM seqinbox_receive('A', 'a-1', 'for ever', 'v');
SELECT outcome FROM seqinbox_receive('A', 'a-2', 'not at all', 'v');
SELECT outcome FROM seqinbox_receive('A', 'a-3', 'another', 'v');
SELECT let_pass(context_id, '11 days') FROM instance;
UPDATE sequence_instance SET retain_until = 'infinity' WHERE context_id = 'for ever';
UPDATE sequence_instance SET retain_until = '-infinity' WHERE context_id = 'not at all';
CALL seqinbox_housekeeping('0');
SELECT context_id FROM sequence_instance WHERE name = 'Orders';
DELETE FROM sequenced_message;
DELETE FROM sequence_instance WHERE name = 'Orders';

-- a failed message that failed again in another instance has its payload there,
-- whichever of the two is removed first
SELECT seqinbox_record_failure('A', 'a-1', 'first', 'error', 'v', NULL, '{h}', '{v}') > 0 AS recorded;
SELECT seqinbox_record_failure('A', 'a-1', 'second', 'error') > 0 AS recorded;
SELECT let_pass('first', '10 days');
CALL seqinbox_housekeeping('0');
SELECT * FROM instance;
SELECT * FROM payloads;
SELECT let_pass('second', '10 days');
CALL seqinbox_housekeeping('0');
SELECT * FROM letter;
DELETE FROM dead_letter;
SELECT seqinbox_record_failure('R', 'r-1', 'first', 'error', 'v', NULL, '{h}', '{v}') > 0 AS recorded;
SELECT seqinbox_record_failure('R', 'r-1', 'second', 'error') > 0 AS recorded;
SELECT let_pass('second', '10 days');
CALL seqinbox_housekeeping('0');
SELECT * FROM instance;
SELECT * FROM payloads;

SET client_min_messages = warning;
DROP SCHEMA housekeeping CASCADE;
