-- An instance closes when all declared types of its sequence have been
-- processed and nothing waits; and what happens to messages that come later.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('closing');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = closing;
SELECT seqinbox_declare('{"sequences": [
    {"name": "S", "retentionPeriod": "1 day", "messages": [
        {"type": "A"}, {"type": "B", "releaseCondition": {"predecessor": "A"}}, {"type": "C"}]},
    {"name": "Other", "retentionPeriod": "1 day", "messages": [{"type": "D"}, {"type": "E"}]}]}');

CREATE FUNCTION receive(type text, message text, context text) RETURNS text LANGUAGE sql AS $$
SELECT outcome FROM seqinbox_receive(type, message, context, convert_to(message, 'UTF8'))
$$;
CREATE FUNCTION next(context text) RETURNS text LANGUAGE sql AS $$
SELECT n.idempotence_id FROM seqinbox_next(seqinbox_open_instance('S', context)) AS n
$$;
CREATE FUNCTION state(context text) RETURNS text LANGUAGE sql AS $$
SELECT concat_ws(', ', state, CASE WHEN closed_at IS NOT NULL THEN 'closed_at' END,
                 CASE WHEN release_due_at IS NOT NULL THEN 'due' END)
  FROM sequence_instance WHERE name = 'S' AND context_id = context
$$;

-- with the last type, in the transaction of its delivery
SELECT receive('A', 'a', 'in order'), receive('B', 'b', 'in order'), state('in order');
BEGIN;
SELECT receive('C', 'c', 'in order'), state('in order');
SELECT closed_at BETWEEN now() AND clock_timestamp() AS now FROM sequence_instance WHERE context_id = 'in order';
ROLLBACK;
SELECT state('in order');
SELECT receive('C', 'c', 'in order'), state('in order');
-- whichever is the last
SELECT receive('C', 'c-2', 'another'), receive('A', 'a-2', 'another'), state('another'),
       receive('B', 'b-2', 'another'), state('another');
-- several messages of one type do not stand for another type
SELECT receive('A', 'a-3', 'several'), receive('A', 'a-4', 'several'), receive('B', 'b-3', 'several'),
       receive('B', 'b-4', 'several'), state('several');
-- types of another sequence in the same context neither
SELECT receive('D', 'd-1', 'several'), receive('E', 'e-1', 'several'), state('several');
SELECT state FROM sequence_instance WHERE name = 'Other' AND context_id = 'several';

-- not while a message waits, also when its type is there
SELECT seqinbox_open_instance('S', 'waits') AS instance \gset
SELECT receive('A', 'a-5', 'waits'), receive('B', 'b-5', 'waits'),
       seqinbox_store('B', 'b-6', :instance, 'WAITING') > 0 AS stored, receive('C', 'c-5', 'waits'), state('waits');
SELECT next('waits'), state('waits');
SELECT next('waits'), state('waits');

-- the last message is one that waited: next closes, after it has nothing left
SELECT receive('B', 'b-7', 'by next'), receive('C', 'c-7', 'by next'), receive('A', 'a-7', 'by next'), state('by next');
SELECT next('by next'), state('by next');
SELECT next('by next'), state('by next');

-- a message that failed has not been processed
SELECT receive('A', 'a-8', 'failed'), receive('B', 'b-8', 'failed'),
       seqinbox_record_failure('C', 'c-8', 'failed', 'error') > 0 AS failed, state('failed');
SELECT next('failed'), state('failed');
SELECT receive('C', 'c-8', 'failed'), state('failed');
-- one that is to be retried keeps the instance open, also when its type is there
SELECT receive('A', 'a-9', 'retry'), receive('B', 'b-9', 'retry'),
       seqinbox_record_failure('B', 'b-9b', 'retry', 'error', 'value', retry_after => '0') > 0 AS failed,
       receive('C', 'c-9', 'retry'), state('retry');
SELECT next('retry'), state('retry');
SELECT next('retry'), state('retry');

-- the last one may come in by store
SELECT seqinbox_open_instance('S', 'stored') AS instance \gset
SELECT receive('A', 'a-10', 'stored'), receive('B', 'b-10', 'stored'),
       seqinbox_store('C', 'c-10', :instance, 'PROCESSED') > 0 AS stored, state('stored');

-- a message for a closed instance is handled, whatever its condition; the
-- instance stays as it is
SELECT receive('A', 'a-11', 'closed'), seqinbox_close(seqinbox_open_instance('S', 'closed')), state('closed');
SELECT closed_at FROM sequence_instance WHERE context_id = 'closed' \gset
DELETE FROM sequenced_message WHERE idempotence_id = 'a-11';
SELECT process, outcome, attempts, release_due FROM seqinbox_receive('B', 'b-11', 'closed', 'value');
SELECT process, outcome, attempts, release_due FROM seqinbox_receive('C', 'c-11', 'closed', 'value');
SELECT message_type, m.state FROM sequenced_message m JOIN sequence_instance i ON i.id = m.sequence_instance_id
 WHERE context_id = 'closed' ORDER BY m.id;
-- its duplicates are recognised, and those of what came before the end
SELECT receive('B', 'b-11', 'closed'), receive('C', 'c-11', 'closed'), receive('A', 'a', 'in order');
-- even when the last type comes now
SELECT receive('A', 'a-12', 'closed'), state('closed');
SELECT closed_at = :'closed_at' AS as_before FROM sequence_instance WHERE context_id = 'closed';
SELECT count(*) AS messages FROM seqinbox_next(seqinbox_open_instance('S', 'closed'));
SELECT state('closed');

-- types that were handled and are no longer declared do not stand in the way
SELECT receive('A', 'a-13', 'undeclared'), receive('C', 'c-13', 'undeclared');
SELECT seqinbox_declare('{"sequences": [
    {"name": "S", "retentionPeriod": "1 day", "messages": [
        {"type": "A"}, {"type": "B", "releaseCondition": {"predecessor": "A"}}]}]}');
SELECT state('undeclared'), receive('B', 'b-13', 'undeclared'), state('undeclared');
-- nor do declared types that are no longer missed: next closes
SELECT receive('A', 'a-14', 'fewer'), state('fewer');
SELECT seqinbox_declare('{"sequences": [{"name": "S", "retentionPeriod": "1 day", "messages": [{"type": "A"}]}]}');
SELECT state('fewer'), next('fewer'), state('fewer');
-- a type that is new keeps open what is open, and opens nothing
SELECT seqinbox_declare('{"sequences": [
    {"name": "S", "retentionPeriod": "1 day", "messages": [{"type": "A"}, {"type": "F"}]}]}');
SELECT receive('A', 'a-15', 'more'), state('more'), next('fewer'), state('fewer');
SELECT receive('F', 'f-14', 'fewer'), state('fewer'), receive('F', 'f-15', 'more'), state('more');

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA closing CASCADE;
