-- seqinbox_waiting: each message that waits, with what it waits for.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('waiting');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = waiting;
SELECT seqinbox_declare('{"sequences": [
    {"name": "Orders", "retentionPeriod": "1 day", "messages": [
        {"type": "Placed"},
        {"type": "Paid", "releaseCondition": {"predecessor": "Placed"}},
        {"type": "Shipped", "releaseCondition": {"predecessor": "Paid"}}]},
    {"name": "Nested", "retentionPeriod": "1 day", "messages": [
        {"type": "P"}, {"type": "Q"}, {"type": "R"}, {"type": "S"}, {"type": "W"},
        {"type": "T", "releaseCondition": {"and": [
            {"or": [{"predecessor": "P"}, {"predecessor": "Q"}]},
            {"or": [{"predecessor": "R"}, {"and": [{"predecessor": "S"}, {"predecessor": "W"}]}]}]}}]}]}');
CREATE FUNCTION receive(type text, message text, context text) RETURNS text LANGUAGE sql AS $$
SELECT outcome FROM seqinbox_receive(type, message, context, NULL)
$$;
-- age depends on the clock
CREATE VIEW stuck AS
SELECT context_id, message_type AS type, idempotence_id AS message, waits_for, predecessor, predecessor_state, predecessor_error
  FROM seqinbox_waiting();

-- nothing waits
SELECT * FROM seqinbox_waiting();
SELECT receive('Placed', 'p-0', 'none');
SELECT * FROM seqinbox_waiting();

-- a predecessor that was not received, one that waits itself
SELECT receive('Shipped', 's-1', 'order-1'), receive('Paid', 'd-1', 'order-1');
SELECT * FROM stuck;
-- who waits where, and since when
SELECT id, sequence_instance_id = (SELECT i.id FROM sequence_instance i WHERE i.context_id = 'order-1') AS instance,
       sequence_name, context_id, message_type, idempotence_id,
       waiting_since = (SELECT m.created_at FROM sequenced_message m WHERE m.id = w.id) AS since,
       age BETWEEN '0' AND clock_timestamp() - waiting_since AS age
  FROM seqinbox_waiting() AS w;
UPDATE sequenced_message SET created_at = created_at - interval '3 days' WHERE idempotence_id = 's-1';
SELECT idempotence_id, justify_hours(date_trunc('hour', age)) AS age FROM seqinbox_waiting();
-- a predecessor that failed, with its error; one that failed without a word
SELECT seqinbox_record_failure('Placed', 'p-1', 'order-1', 'no stock') > 0 AS failed;
SELECT * FROM stuck;
SELECT seqinbox_record_failure('Placed', 'p-1b', 'order-1', NULL) > 0 AS failed;
SELECT * FROM stuck;
-- one of them that waits says more than one that failed
SELECT seqinbox_store('Placed', 'p-1c', i.id, 'WAITING') > 0 AS stored FROM sequence_instance i WHERE context_id = 'order-1';
SELECT * FROM stuck;
DELETE FROM buffered_message b USING sequenced_message m WHERE m.id = b.sequenced_message_id AND m.idempotence_id = 'p-1c';
DELETE FROM sequenced_message WHERE idempotence_id = 'p-1c';
-- processed: the next in the chain has nothing to wait for but its release
SELECT receive('Placed', 'p-1', 'order-1');
SELECT * FROM stuck;
SELECT n.idempotence_id FROM sequence_instance i, LATERAL seqinbox_next(i.id) AS n WHERE i.context_id = 'order-1';
SELECT * FROM stuck;
SELECT n.idempotence_id FROM sequence_instance i, LATERAL seqinbox_next(i.id) AS n WHERE i.context_id = 'order-1';
SELECT * FROM stuck;

-- a message that failed is not one that waits
SELECT seqinbox_record_failure('Placed', 'p-2', 'order-2', 'error', 'value', retry_after => '1 hour') > 0 AS failed;
SELECT * FROM stuck;

-- only what is missed: not the parts of a condition that hold already
SELECT receive('T', 't-3', 'nested');
SELECT predecessor, predecessor_state FROM stuck;
SELECT receive('Q', 'q-3', 'nested');
SELECT predecessor, predecessor_state FROM stuck;
SELECT receive('S', 's-3', 'nested');
SELECT predecessor, predecessor_state FROM stuck;
SELECT receive('R', 'r-3', 'nested');
SELECT waits_for, predecessor FROM stuck;
SELECT n.idempotence_id FROM sequence_instance i, LATERAL seqinbox_next(i.id) AS n WHERE i.context_id = 'nested';
SELECT * FROM stuck;

-- the oldest first; several contexts and sequences
SELECT receive('Paid', 'd-4', 'order-4'), receive('T', 't-4', 'order-4'),
       receive('Shipped', 's-5', 'order-5'), receive('Paid', 'd-5', 'order-4');
UPDATE sequenced_message SET created_at = '2020-01-01' WHERE idempotence_id IN ('d-5', 's-5');
SELECT * FROM stuck;
SELECT sequence_name, count(DISTINCT id) FROM seqinbox_waiting() GROUP BY sequence_name ORDER BY sequence_name;

-- a type that is no longer declared, or now in another sequence
DELETE FROM message_type_declaration WHERE message_type = 'Shipped';
UPDATE message_type_declaration SET sequence_name = 'Orders' WHERE message_type = 'T';
SELECT * FROM stuck;
-- a predecessor that is not declared
UPDATE message_type_declaration SET release_condition = '{"and": [{"predecessor": "Placed"}, {"predecessor": "Unknown"}]}'
 WHERE message_type = 'Paid';
SELECT * FROM stuck WHERE type = 'Paid';

-- it changes nothing, so a read-only transaction will do
BEGIN READ ONLY;
SELECT count(*) FROM seqinbox_waiting();
COMMIT;

SET search_path = waiting_missing;
SELECT * FROM seqinbox_waiting();
\echo :SQLSTATE
RESET search_path;

SET client_min_messages = warning;
DROP SCHEMA waiting CASCADE;
