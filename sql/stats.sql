-- seqinbox_message_stats and seqinbox_instance_stats: what they count, and that
-- they read no more than that.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('stats');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = stats;
SET timezone = 'UTC';
ALTER TABLE sequence_instance SET (autovacuum_enabled = off);
ALTER TABLE sequenced_message SET (autovacuum_enabled = off);

-- an empty inbox
SELECT * FROM seqinbox_message_stats();
SELECT * FROM seqinbox_instance_stats();

-- what is declared is there from the start
SELECT seqinbox_declare('{"sequences": [
    {"name": "Orders", "retentionPeriod": "10 days", "messages": [
        {"type": "A"}, {"type": "B", "releaseCondition": {"predecessor": "A"}}]},
    {"name": "Returns", "retentionPeriod": "10 days", "messages": [{"type": "C", "subType": "X"}]}]}');
SELECT * FROM seqinbox_message_stats();
SELECT * FROM seqinbox_instance_stats();

-- messages: those that wait or have failed are counted, and the age of the
-- oldest is in seconds
BEGIN;
SELECT outcome FROM seqinbox_receive('B', 'b-1', 'order-1', 'v');
SELECT outcome FROM seqinbox_receive('B', 'b-2', 'order-1', 'v');
SELECT outcome FROM seqinbox_receive('B', 'b-3', 'order-2', 'v');
SELECT outcome FROM seqinbox_receive('A', 'a-1', 'order-3', 'v');
SELECT seqinbox_record_failure('A', 'a-2', 'order-4', 'error') > 0 AS recorded;
SELECT seqinbox_open_instance('Undeclared', 'c', '1 day') AS undeclared \gset
SELECT seqinbox_store('U', 'u-1', :undeclared, 'WAITING', 'v') > 0 AS stored,
       seqinbox_store('V', 'v-1', :undeclared, 'PROCESSED') > 0 AS stored;
UPDATE sequenced_message SET created_at = now();
UPDATE sequenced_message SET created_at = now() - interval '1 hour' WHERE idempotence_id = 'b-2';
UPDATE sequenced_message SET created_at = now() - interval '2 hours' WHERE idempotence_id = 'a-2';
UPDATE sequenced_message SET created_at = now() - interval '3 hours' WHERE idempotence_id = 'a-1';
SELECT s.message_type, s.state, s.messages, s.estimated,
       oldest_seconds - extract(epoch FROM clock_timestamp() - now()) <= hours * 3600
       AND oldest_seconds >= hours * 3600 AS oldest_is_right, oldest_seconds IS NULL AS none
  FROM seqinbox_message_stats() AS s
  LEFT JOIN (VALUES ('A', 'FAILED', 2), ('B', 'WAITING', 1), ('U', 'WAITING', 0)) AS e (message_type, state, hours)
    ON (e.message_type, e.state) = (s.message_type, s.state);
COMMIT;
-- what was processed is estimated, from the statistics that ANALYZE gathers
ANALYZE sequenced_message;
SELECT message_type, state, messages, estimated FROM seqinbox_message_stats() WHERE state = 'PROCESSED';

-- instances: one condition each
DELETE FROM sequential_inbox_idempotence;
DELETE FROM buffered_message;
DELETE FROM sequenced_message;
DELETE FROM sequence_instance WHERE name <> 'seqinbox.idempotence';
CREATE FUNCTION make_instance(context text, sequence text, state text, age interval, retention interval, due interval)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO sequence_instance (name, context_id, state, created_at, retain_until, release_due_at)
    VALUES (sequence, context, state, now() - age, now() - age + retention, now() + due);
$$;
SELECT make_instance('young', 'Orders', 'OPEN', '74 minutes', '100 minutes', NULL),
       make_instance('at three quarters', 'Orders', 'OPEN', '75 minutes', '100 minutes', NULL),
       make_instance('old', 'Orders', 'OPEN', '99 minutes', '100 minutes', NULL),
       make_instance('at its end', 'Orders', 'OPEN', '100 minutes', '100 minutes', NULL),
       make_instance('past its end', 'Orders', 'OPEN', '10 days', '1 minute', NULL),
       make_instance('closed', 'Orders', 'CLOSED', '99 minutes', '100 minutes', NULL),
       make_instance('closed and past its end', 'Orders', 'CLOSED', '10 days', '1 minute', NULL);
SELECT * FROM seqinbox_instance_stats();
SELECT make_instance('due', 'Returns', 'OPEN', '0', '1 day', '0'),
       make_instance('not due yet', 'Returns', 'OPEN', '0', '1 day', '10 minutes'),
       make_instance('closed, but due', 'Returns', 'CLOSED', '0', '1 day', '-1 day'),
       make_instance('undeclared', 'Undeclared', 'OPEN', '0', '1 day', NULL),
       make_instance('undeclared and closed', 'Other', 'CLOSED', '0', '1 day', NULL);
SELECT * FROM seqinbox_instance_stats();
-- closed ones are estimated
ANALYZE sequence_instance;
SELECT * FROM seqinbox_instance_stats();

-- dead letters, also of sequences that are not declared
SELECT seqinbox_dead_letter(seqinbox_record_failure('A', 'a-3', 'letter-1', 'error'), 'reason') > 0 AS letter,
       seqinbox_dead_letter(seqinbox_record_failure('A', 'a-4', 'letter-1', 'error'), 'reason') > 0 AS letter;
UPDATE dead_letter SET sequence_name = 'Gone' WHERE idempotence_id = 'a-4';
SELECT sequence_name, dead_letters FROM seqinbox_instance_stats();

-- on big tables, with the plans that this session made while they were empty:
-- no sequential scan, and no more read from an index than what is counted
DELETE FROM dead_letter;
DELETE FROM sequence_instance WHERE name <> 'seqinbox.idempotence';
INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
SELECT 10000 + n, CASE n % 4 WHEN 0 THEN 'Returns' ELSE 'Orders' END, n,
       CASE WHEN n % 400 < 2 THEN 'OPEN' ELSE 'CLOSED' END, now(), now() + interval '1 day'
  FROM generate_series(1, 20000) AS n;
INSERT INTO sequenced_message (message_type, cluster_name, topic, sequenced_message_id, idempotence_id, state,
                               created_at, sequence_instance_id)
SELECT CASE n % 4 WHEN 0 THEN 'C.X' ELSE 'A' END, '', '', gen_random_uuid(), n,
       CASE n % 400 WHEN 0 THEN 'WAITING' WHEN 1 THEN 'FAILED' ELSE 'PROCESSED' END, now(), 10000 + n
  FROM generate_series(1, 20000) AS n;
INSERT INTO dead_letter (sequence_name, context_id, message_type, cluster_name, topic, sequenced_message_id,
                         idempotence_id, state, created_at, attempts, reason, removed_at, payload_buffered)
SELECT 'Orders', n, 'A', '', '', gen_random_uuid(), n, 'FAILED', now(), 0, '', now(), false
  FROM generate_series(1, 300) AS n;
ANALYZE sequence_instance, sequenced_message, dead_letter;
BEGIN;
CREATE TEMPORARY TABLE before ON COMMIT DROP AS
SELECT oid AS relation, pg_stat_get_xact_numscans(oid) AS scans, pg_stat_get_xact_tuples_returned(oid) AS read
  FROM pg_class WHERE relnamespace = 'stats'::regnamespace;
SELECT message_type, state, round(messages, -3) AS about, CASE WHEN NOT estimated THEN messages END AS messages
  FROM seqinbox_message_stats();
SELECT sequence_name, open_instances, due_instances, expiring_soon, expired, dead_letters,
       round(closed_estimate, -3) AS closed_about
  FROM seqinbox_instance_stats();
SELECT relation::regclass AS relation, pg_stat_get_xact_numscans(relation) - scans AS sequential_scans,
       EXISTS (SELECT FROM before b JOIN pg_index i ON i.indexrelid = b.relation
                WHERE i.indrelid = before.relation AND pg_stat_get_xact_numscans(b.relation) > b.scans) AS by_index
  FROM before
 WHERE relation::regclass::text IN ('sequence_instance', 'sequenced_message', 'dead_letter')
 ORDER BY relation::regclass::text;
SELECT relation::regclass AS index_of_which_much_was_read
  FROM before JOIN pg_index ON indexrelid = relation
 WHERE pg_stat_get_xact_tuples_returned(relation) - read > 1000;
COMMIT;

-- no inbox
SET search_path = '';
SELECT * FROM seqinbox_message_stats();
\echo :SQLSTATE
SELECT * FROM seqinbox_instance_stats();
\echo :SQLSTATE
SET search_path = stats;

-- a read-only transaction will do
BEGIN READ ONLY;
SELECT count(*) FROM seqinbox_message_stats();
SELECT count(*) FROM seqinbox_instance_stats();
COMMIT;

SET client_min_messages = warning;
DROP SCHEMA stats CASCADE;
