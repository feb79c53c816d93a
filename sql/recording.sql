-- Recording mode: until a sequence's sequencing starts, its messages are
-- handled at once, and recorded for those that come after the start.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('recording');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = recording;

CREATE FUNCTION declare(start text) RETURNS void LANGUAGE sql AS $$
SELECT seqinbox_declare(jsonb_set('{"sequences": [
    {"name": "S", "retentionPeriod": "1 day", "messages": [
        {"type": "A"},
        {"type": "B", "releaseCondition": {"predecessor": "A"}},
        {"type": "C", "releaseCondition": {"predecessor": "B"}}]}]}',
    '{sequences,0,sequencingStartTimestamp}', to_jsonb(start)))
$$;
CREATE VIEW record AS
SELECT context_id, i.state AS instance, created_in_recording_mode AS recording, release_due_at IS NOT NULL AS due,
       message_type AS type, m.idempotence_id AS message, m.state, attempts,
       EXISTS (SELECT FROM buffered_message b WHERE b.sequenced_message_id = m.id) AS buffered,
       c.idempotence_id IS NOT NULL AS claimed
  FROM sequence_instance i
  JOIN sequenced_message m ON m.sequence_instance_id = i.id
  LEFT JOIN sequential_inbox_idempotence c USING (message_type, idempotence_id)
 ORDER BY m.id;

-- until the start nobody waits; all is recorded as processed
SELECT declare('2999-01-01');
SELECT process, outcome, attempts, release_due FROM seqinbox_receive('C', 'c-1', 'one', 'value', 'key', '{h}', '{v}');
SELECT process, outcome, attempts, release_due FROM seqinbox_receive('B', 'b-2', 'two', 'value');
SELECT * FROM record;
SELECT seqinbox_is_releasable('B', i.id) AS b, seqinbox_is_releasable('C', i.id) AS c
  FROM sequence_instance i WHERE context_id = 'one';
-- duplicates are recognised, and failures counted
SELECT process, outcome, attempts, release_due FROM seqinbox_receive('C', 'c-1', 'one', 'value');
SELECT seqinbox_record_failure('C', 'c-3', 'three', 'error') > 0 AS failed;
SELECT process, outcome, attempts, release_due FROM seqinbox_receive('C', 'c-3', 'three', 'value');
-- without a context ID, nothing is recorded
SELECT process, outcome, id FROM seqinbox_receive('C', 'c-0', NULL, 'value');
-- a batch
SELECT ordinal, process, outcome, release_due
  FROM seqinbox_receive_batch('{C,C,B}', '{c-4,c-4,b-4}', '{four,four,four}', '{v,v,v}');
-- all types recorded: the instance closes
SELECT process, outcome FROM seqinbox_receive('A', 'a-4', 'four', 'value');
SELECT * FROM record WHERE context_id IN ('three', 'four');

-- the start comes: successors find their predecessors
UPDATE sequence_declaration SET sequencing_start_timestamp = clock_timestamp() - interval '1 millisecond';
SELECT process, outcome, release_due FROM seqinbox_receive('C', 'c-2', 'two', 'value');
-- others wait: A was not recorded in this context
SELECT process, outcome, release_due FROM seqinbox_receive('B', 'b-1', 'one', 'value');
-- what was recorded is a duplicate
SELECT process, outcome FROM seqinbox_receive('B', 'b-2', 'two', 'value');
-- new instances are no longer of recording mode; the old ones stay so
SELECT process, outcome FROM seqinbox_receive('B', 'b-5', 'five', 'value');
SELECT process, outcome, release_due FROM seqinbox_receive('A', 'a-1', 'one', 'value');
SELECT message_type, idempotence_id FROM sequence_instance i, LATERAL seqinbox_next(i.id) WHERE i.context_id = 'one';
SELECT * FROM record WHERE context_id IN ('one', 'two', 'five');

-- a start that is declared anew: recorded at once, also while others wait
SELECT declare('infinity');
SELECT process, outcome, release_due FROM seqinbox_receive('C', 'c-5', 'five', 'value');
SELECT process, outcome, release_due FROM seqinbox_receive('A', 'a-5', 'five', 'value');
SELECT idempotence_id FROM sequence_instance i, LATERAL seqinbox_next(i.id) WHERE i.context_id = 'five';
SELECT * FROM record WHERE context_id = 'five';

-- no recording: a start in the past, of minus infinity, or none
SELECT declare('2020-01-01');
SELECT outcome FROM seqinbox_receive('B', 'b-6', 'six', 'value');
SELECT declare('-infinity');
SELECT outcome FROM seqinbox_receive('B', 'b-7', 'seven', 'value');
SELECT seqinbox_declare('{"sequences": [
    {"name": "S", "retentionPeriod": "1 day", "messages": [
        {"type": "A"}, {"type": "B", "releaseCondition": {"predecessor": "A"}}]}]}');
SELECT outcome FROM seqinbox_receive('B', 'b-8', 'eight', 'value');

-- another sequence has its own start
SELECT seqinbox_declare('{"sequences": [
    {"name": "T", "retentionPeriod": "1 day", "sequencingStartTimestamp": "2999-01-01", "messages": [
        {"type": "D"}, {"type": "E", "releaseCondition": {"predecessor": "D"}}]}]}');
SELECT outcome FROM seqinbox_receive('E', 'e-9', 'nine', 'value');
SELECT outcome FROM seqinbox_receive('B', 'b-9', 'nine', 'value');

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA recording CASCADE;
