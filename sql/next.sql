-- seqinbox_next: hands out the messages that may be released, one a call.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('next');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = next;
SELECT seqinbox_declare('{"sequences": [
    {"name": "S", "retentionPeriod": "1 day", "messages": [
        {"type": "A"},
        {"type": "B", "releaseCondition": {"predecessor": "A"}},
        {"type": "C", "releaseCondition": {"predecessor": "A"}},
        {"type": "D", "releaseCondition": {"predecessor": "C"}},
        {"type": "E"}]},
    {"name": "T", "retentionPeriod": "1 day", "messages": [
        {"type": "X"}, {"type": "Y", "releaseCondition": {"predecessor": "X"}}]}]}');
CREATE FUNCTION receive(type text, message text, context text) RETURNS text LANGUAGE sql AS $$
SELECT outcome FROM seqinbox_receive(type, message, context, convert_to('value of ' || message, 'UTF8'))
$$;
CREATE FUNCTION instance(context text) RETURNS bigint LANGUAGE sql AS $$
SELECT id FROM sequence_instance WHERE context_id = context
$$;
CREATE VIEW due AS
SELECT context_id, state, release_due_at IS NOT NULL AS due
  FROM sequence_instance WHERE name IN ('S', 'T') ORDER BY id;

-- what is handed out, in all its columns
SELECT outcome, id AS message, sequence_instance_id AS instance
  FROM seqinbox_receive('B', 'b-1', 'columns', 'value', 'key', '{h,h}', '{v,NULL}', 'orders', 'main',
                        '00112233-4455-6677-8899-aabbccddeeff',
                        '00-00000000000000010000000000000002-0000000000000003-01') \gset
SELECT receive('A', 'a-1', 'columns');
BEGIN;
SELECT id = :message AS id, sequence_instance_id = :instance AS instance, message_type, idempotence_id, context_id,
       message_value, message_key, header_names, header_values, topic, cluster_name, message_uuid, traceparent,
       attempts, received_at = (SELECT created_at FROM sequenced_message m WHERE m.id = :message) AS received_at
  FROM seqinbox_next(:instance) \gx
-- it counts as processed, in this transaction: its payload is gone, its claim
-- stays
SELECT state, state_changed_at BETWEEN now() AND clock_timestamp() AS changed_now, pending_action, retry_at
  FROM sequenced_message WHERE id = :message;
SELECT (SELECT count(*) FROM buffered_message) AS buffered, (SELECT count(*) FROM message_header) AS headers,
       (SELECT count(*) FROM sequential_inbox_idempotence WHERE idempotence_id = 'b-1') AS claims;
SELECT count(*) AS others FROM seqinbox_next(:instance);
-- a rollback takes all of that back
ROLLBACK;
SELECT state FROM sequenced_message WHERE id = :message;
SELECT (SELECT count(*) FROM buffered_message) AS buffered, (SELECT count(*) FROM message_header) AS headers;
SELECT * FROM due;
BEGIN;
SAVEPOINT s;
SELECT id = :message AS id FROM seqinbox_next(:instance);
ROLLBACK TO s;
SELECT id = :message AS id FROM seqinbox_next(:instance);
COMMIT;
SELECT id FROM seqinbox_next(:instance);

-- the order is that of created_at, then id; a message that was not yet
-- releasable takes its place as soon as it is
SELECT receive('D', 'd-2', 'order'), receive('C', 'c-2', 'order'), receive('B', 'b-2', 'order'),
       receive('C', 'c-3', 'order'), receive('B', 'b-3', 'order'), receive('B', 'b-4', 'order'),
       receive('D', 'd-3', 'order'), receive('A', 'a-2', 'order');
UPDATE sequenced_message SET created_at = CASE idempotence_id WHEN 'd-2' THEN '2020-01-01 11:00'::timestamptz
                                                              WHEN 'b-4' THEN '2020-01-01 12:00'
                                                              ELSE '2020-01-02 12:00' END
 WHERE sequence_instance_id = instance('order');
SELECT idempotence_id FROM generate_series(1, 10) AS turn, seqinbox_next(instance('order') + 0 * turn);

-- nothing to hand out: no row, and the drain is no longer due
SELECT receive('B', 'b-5', 'nothing');
SELECT * FROM due WHERE context_id = 'nothing';
SELECT count(*) FROM seqinbox_next(instance('nothing'));
SELECT * FROM due WHERE context_id = 'nothing';
SELECT count(*) FROM seqinbox_next(instance('nothing'));
-- as long as there are messages, it is
SELECT receive('C', 'c-5', 'nothing'), receive('A', 'a-5', 'nothing');
SELECT idempotence_id FROM seqinbox_next(instance('nothing'));
SELECT * FROM due WHERE context_id = 'nothing';
SELECT idempotence_id FROM seqinbox_next(instance('nothing'));
SELECT * FROM due WHERE context_id = 'nothing';
SELECT idempotence_id FROM seqinbox_next(instance('nothing'));
SELECT * FROM due WHERE context_id = 'nothing';
-- an instance without any message
SELECT seqinbox_open_instance('S', 'empty') AS instance \gset
SELECT count(*) FROM seqinbox_next(:instance);
SELECT * FROM due WHERE context_id = 'empty';
-- a complete one is closed
SELECT receive('Y', 'y-5', 'complete'), receive('X', 'x-5', 'complete');
SELECT idempotence_id FROM seqinbox_next(instance('complete'));
SELECT * FROM due WHERE context_id = 'complete';
SELECT idempotence_id FROM seqinbox_next(instance('complete'));
SELECT * FROM due WHERE context_id = 'complete';

-- retries that come later: the drain is due when the first of them is
SELECT seqinbox_record_failure('E', 'e-6', 'retries', 'error', 'value', retry_after => '3 hours') > 0 AS failed,
       seqinbox_record_failure('E', 'e-7', 'retries', 'error', 'value', retry_after => '1 hour') > 0 AS failed,
       seqinbox_record_failure('E', 'e-8', 'retries', 'error', 'value', retry_after => '2 hours') > 0 AS failed,
       seqinbox_record_failure('E', 'e-9', 'retries', 'error', 'value') > 0 AS failed,
       receive('B', 'b-6', 'retries'), receive('A', 'a-6', 'retries');
CREATE FUNCTION due_with(context text) RETURNS text LANGUAGE sql AS $$
SELECT string_agg(m.idempotence_id, ' ')
  FROM sequence_instance i JOIN sequenced_message m ON m.sequence_instance_id = i.id AND m.retry_at = i.release_due_at
 WHERE i.context_id = context
$$;
SELECT due_with('retries');
SELECT idempotence_id FROM seqinbox_next(instance('retries'));
SELECT idempotence_id FROM seqinbox_next(instance('retries'));
SELECT due_with('retries');
UPDATE sequenced_message SET retry_at = retry_at - interval '90 minutes' WHERE idempotence_id IN ('e-6', 'e-7', 'e-8');
SELECT idempotence_id FROM seqinbox_next(instance('retries'));
SELECT idempotence_id FROM seqinbox_next(instance('retries'));
SELECT due_with('retries');

-- without an argument: of any instance whose drain is due, the one that has
-- been due the longest first
UPDATE sequence_instance SET release_due_at = NULL;
SELECT count(*) FROM seqinbox_next();
SELECT receive('B', 'b-10', 'any 1'), receive('C', 'c-10', 'any 1'), receive('A', 'a-10', 'any 1'),
       receive('B', 'b-11', 'any 2'), receive('A', 'a-11', 'any 2'),
       receive('B', 'b-12', 'any 3'), receive('A', 'a-12', 'any 3'),
       receive('B', 'b-13', 'stuck'),
       receive('Y', 'y-13', 'any 4'), receive('X', 'x-13', 'any 4');
UPDATE sequence_instance SET release_due_at = CASE context_id WHEN 'any 2' THEN now() - interval '3 hours'
                                                              WHEN 'stuck' THEN now() - interval '2 hours'
                                                              WHEN 'any 4' THEN now() - interval '1 hour'
                                                              WHEN 'any 1' THEN now() - interval '1 minute'
                                                              WHEN 'any 3' THEN now() + interval '1 hour' END;
SELECT idempotence_id, context_id FROM seqinbox_next();
SELECT * FROM due WHERE context_id ~ '^(any|stuck)';
SELECT idempotence_id, context_id FROM seqinbox_next();
SELECT * FROM due WHERE context_id ~ '^(any|stuck)';
SELECT idempotence_id, context_id FROM seqinbox_next(NULL);
SELECT idempotence_id, context_id FROM seqinbox_next(sequence_instance_id => NULL);
SELECT idempotence_id, context_id FROM seqinbox_next();
SELECT * FROM due WHERE context_id ~ '^(any|stuck)';
-- an argument finds it all the same
SELECT idempotence_id FROM seqinbox_next(instance('any 3'));

-- in the transaction of a receive
BEGIN;
SELECT receive('B', 'b-20', 'one transaction'), receive('A', 'a-20', 'one transaction');
SELECT idempotence_id FROM seqinbox_next(instance('one transaction'));
SELECT receive('C', 'c-20', 'one transaction');
SELECT count(*) FROM seqinbox_next(instance('one transaction'));
COMMIT;
SELECT * FROM due WHERE context_id = 'one transaction';

-- a row for each instance, in one statement
SELECT receive('B', 'b-21', 'many 1'), receive('A', 'a-21', 'many 1'), receive('B', 'b-22', 'many 2'),
       receive('B', 'b-23', 'many 3'), receive('A', 'a-23', 'many 3');
SELECT n.context_id, n.idempotence_id
  FROM sequence_instance i CROSS JOIN LATERAL seqinbox_next(i.id) AS n
 WHERE i.context_id LIKE 'many %' ORDER BY n.context_id;

-- a message whose type is no longer declared is not handed out
SELECT receive('Y', 'y-24', 'undeclared'), receive('X', 'x-24', 'undeclared');
DELETE FROM message_type_declaration WHERE message_type = 'Y';
SELECT count(*) FROM seqinbox_next(instance('undeclared'));
SELECT * FROM due WHERE context_id = 'undeclared';

-- what may be wrong
SELECT * FROM seqinbox_next(999999);
\echo :SQLSTATE
SELECT * FROM seqinbox_next(-1);
\echo :SQLSTATE
BEGIN READ ONLY;
SELECT * FROM seqinbox_next();
\echo :SQLSTATE
ROLLBACK;
BEGIN READ ONLY;
SELECT * FROM seqinbox_next(instance('nothing'));
\echo :SQLSTATE
ROLLBACK;
SET search_path = next_missing;
SELECT * FROM seqinbox_next();
\echo :SQLSTATE
RESET search_path;

SET client_min_messages = warning;
DROP SCHEMA next CASCADE;
