-- Other programs, and an operator by hand, write times into the tables, infinite
-- ones too: what has one is as good as any other, and is in nobody's way.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('infinite_times');
SET search_path = infinite_times;
\set SHOW_CONTEXT never
\pset null '-'
SELECT seqinbox_declare('{"sequences": [{"name": "S", "retentionPeriod": "1 day", "messages": [
    {"type": "A"}, {"type": "B", "releaseCondition": {"predecessor": "A"}}]}]}');
SELECT (seqinbox_receive('B', context, context, 'v')).outcome FROM unnest('{early,late,kept,made,usual}'::text[]) AS context;
UPDATE sequenced_message SET created_at = '-infinity' WHERE idempotence_id = 'early';
UPDATE sequenced_message SET created_at = 'infinity' WHERE idempotence_id = 'late';
UPDATE sequence_instance SET retain_until = 'infinity' WHERE context_id = 'kept';
UPDATE sequence_instance SET created_at = '-infinity' WHERE context_id = 'made';

-- seeing what happens
SELECT context_id, isfinite(waiting_since), age IS NULL AS ageless, predecessor FROM seqinbox_waiting() ORDER BY id;
SELECT message_type, state, messages, oldest_seconds FROM seqinbox_message_stats() WHERE state = 'WAITING';
SELECT sequence_name, open_instances, expiring_soon, expired FROM seqinbox_instance_stats();
SELECT count(*) FROM seqinbox_receive('A', 'a', 'early', 'v');
SELECT idempotence_id, received_at FROM seqinbox_next();

-- housekeeping: a claim of no finite age keeps nobody from being removed
UPDATE sequence_instance SET created_at = now() - interval '9 days', retain_until = now() - interval '8 days'
 WHERE context_id IN ('usual', 'late');
UPDATE sequential_inbox_idempotence SET created_at = '-infinity' WHERE idempotence_id = 'usual';
UPDATE sequential_inbox_idempotence SET created_at = 'infinity' WHERE idempotence_id = 'late';
CALL seqinbox_housekeeping('0');
SELECT context_id, state FROM sequence_instance WHERE name = 'S' ORDER BY context_id;

-- intervals that reach beyond all time are refused before anything is done
INSERT INTO sequence_instance (name, context_id, state, created_at, retain_until)
VALUES ('S', 'expired', 'CLOSED', now() - interval '9 days', now() - interval '8 days');
CALL seqinbox_housekeeping(removal_delay => '300000 years');
\echo :SQLSTATE
CALL seqinbox_housekeeping(keep_dead_letters => '10000 years');
\echo :SQLSTATE
CALL seqinbox_housekeeping(max_duration => '300000 years');
\echo :SQLSTATE
SELECT context_id FROM sequence_instance WHERE context_id = 'expired';

RESET search_path;
DROP SCHEMA infinite_times CASCADE;
