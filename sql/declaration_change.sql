-- A declaration counts from the next call on, also in prepared statements,
-- and however it was made: by seqinbox_declare or in its tables.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('declaration_change');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = declaration_change;
SELECT seqinbox_declare('{"sequences": [
    {"name": "S", "retentionPeriod": "1 day", "messages": [
        {"type": "A"}, {"type": "B", "releaseCondition": {"predecessor": "A"}}]}]}');
SELECT sequence_instance_id AS instance FROM seqinbox_receive('B', 'b-0', 'context', NULL) \gset

-- all that reads declarations, prepared and used before the first change
PREPARE receive AS SELECT outcome FROM seqinbox_receive($1, $2, 'context', NULL);
PREPARE receive_batch AS
SELECT outcome FROM seqinbox_receive_batch(ARRAY[$1::text], ARRAY[$2::text], '{context}', '{NULL}');
PREPARE next AS SELECT idempotence_id FROM seqinbox_next(:instance);
PREPARE releasable AS SELECT seqinbox_is_releasable('B', :instance);
PREPARE open_instance AS SELECT seqinbox_open_instance('S', $1) > 0 AS opened;
PREPARE waiting AS SELECT idempotence_id, waits_for, predecessor FROM seqinbox_waiting();
PREPARE diagram AS SELECT line FROM regexp_split_to_table(seqinbox_diagram('S'), '\n') AS line WHERE line <> '';
PREPARE record_failure AS SELECT seqinbox_record_failure($1, $2, 'context', 'error') > 0 AS recorded;
CREATE FUNCTION use_all() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- as often as makes a generic plan of a custom one
    FOR n IN 1..7 LOOP
        EXECUTE format('EXECUTE receive (%L, %L)', 'B', 'first ' || n);
        EXECUTE format('EXECUTE receive_batch (%L, %L)', 'B', 'batch ' || n);
        EXECUTE 'EXECUTE next';
        EXECUTE 'EXECUTE releasable';
        EXECUTE format('EXECUTE open_instance (%L)', 'first ' || n);
        EXECUTE 'EXECUTE waiting';
        EXECUTE 'EXECUTE diagram';
        EXECUTE format('EXECUTE record_failure (%L, %L)', 'A', 'failed ' || n);
    END LOOP;
END
$$;
SELECT use_all();
DELETE FROM message_header;
DELETE FROM buffered_message;
DELETE FROM sequenced_message;
EXECUTE receive ('B', 'b-1');
EXECUTE next;
EXECUTE releasable;
EXECUTE waiting;
EXECUTE diagram;

-- UPDATE of the condition
UPDATE message_type_declaration SET release_condition = NULL WHERE message_type = 'B';
EXECUTE releasable;
EXECUTE waiting;
EXECUTE diagram;
EXECUTE next;
EXECUTE receive ('B', 'b-2');
EXECUTE receive_batch ('B', 'b-3');
UPDATE message_type_declaration SET release_condition = '{"predecessor": "X"}' WHERE message_type = 'B';
EXECUTE releasable;
EXECUTE receive ('B', 'b-4');
EXECUTE receive_batch ('B', 'b-5');
EXECUTE waiting;
EXECUTE diagram;
EXECUTE next;

-- INSERT of a type, UPDATE of its name
EXECUTE receive ('X', 'x-1');
EXECUTE record_failure ('X', 'x-1');
INSERT INTO message_type_declaration (message_type, sequence_name) VALUES ('X', 'S');
EXECUTE record_failure ('X', 'x-1');
EXECUTE receive ('X', 'x-1');
EXECUTE next;
EXECUTE next;
EXECUTE next;
UPDATE message_type_declaration SET message_type = 'Y' WHERE message_type = 'X';
EXECUTE receive ('X', 'x-2');
EXECUTE receive ('Y', 'y-2');

-- UPDATE of the sequence: retention, which instances keep that they have; start
-- of sequencing
EXECUTE open_instance ('one day');
UPDATE sequence_declaration SET retention_period = '3 hours';
EXECUTE open_instance ('three hours');
EXECUTE open_instance ('one day');
SELECT context_id, retain_until - created_at AS retention FROM sequence_instance
 WHERE context_id IN ('one day', 'three hours') ORDER BY id;
UPDATE sequence_declaration SET sequencing_start_timestamp = '2999-01-01';
EXECUTE receive ('B', 'b-6');
EXECUTE receive_batch ('B', 'b-7');
UPDATE sequence_declaration SET sequencing_start_timestamp = NULL;
UPDATE message_type_declaration SET release_condition = '{"predecessor": "Z"}' WHERE message_type = 'B';
EXECUTE receive ('B', 'b-8');
EXECUTE receive_batch ('B', 'b-9');

-- DELETE of a type, of the sequence
DELETE FROM message_type_declaration WHERE message_type = 'B';
EXECUTE receive ('B', 'b-10');
\echo :SQLSTATE
EXECUTE receive_batch ('B', 'b-10');
\echo :SQLSTATE
EXECUTE releasable;
\echo :SQLSTATE
EXECUTE waiting;
EXECUTE next;
DELETE FROM sequence_declaration;
EXECUTE receive ('A', 'a-10');
\echo :SQLSTATE
EXECUTE open_instance ('no retention');
\echo :SQLSTATE
EXECUTE diagram;
\echo :SQLSTATE
SELECT count(*) AS types FROM message_type_declaration;

-- seqinbox_declare
SELECT seqinbox_declare('{"sequences": [
    {"name": "S", "retentionPeriod": "5 hours", "messages": [
        {"type": "B"}, {"type": "C", "releaseCondition": {"predecessor": "B"}}]}]}');
EXECUTE receive ('B', 'b-10');
EXECUTE receive_batch ('B', 'b-11');
EXECUTE next;
EXECUTE releasable;
EXECUTE open_instance ('five hours');
SELECT retain_until - created_at AS retention FROM sequence_instance WHERE context_id = 'five hours';
EXECUTE diagram;
EXECUTE record_failure ('C', 'c-10');
EXECUTE receive ('A', 'a-11');
\echo :SQLSTATE

-- TRUNCATE
TRUNCATE message_type_declaration;
EXECUTE receive ('B', 'b-12');
\echo :SQLSTATE
EXECUTE diagram;
\echo :SQLSTATE
EXECUTE open_instance ('still');
TRUNCATE sequence_declaration CASCADE;
EXECUTE open_instance ('not any more');
\echo :SQLSTATE

-- a change in a transaction counts there, and is undone with it
SELECT seqinbox_declare('{"sequences": [{"name": "S", "retentionPeriod": "1 day", "messages": [{"type": "B"}]}]}');
BEGIN;
SELECT seqinbox_declare('{"sequences": [{"name": "S", "retentionPeriod": "1 day", "messages": [
    {"type": "A"}, {"type": "B", "releaseCondition": {"predecessor": "A"}}]}]}');
EXECUTE releasable;
SAVEPOINT s;
DELETE FROM message_type_declaration WHERE message_type = 'B';
EXECUTE releasable;
ROLLBACK TO s;
EXECUTE releasable;
ROLLBACK;
EXECUTE releasable;

-- what waits may be released by a declaration: its instances are due then
DELETE FROM buffered_message;
DELETE FROM sequenced_message;
SELECT seqinbox_declare('{"sequences": [
    {"name": "S", "retentionPeriod": "1 day", "messages": [
        {"type": "A"}, {"type": "B", "releaseCondition": {"predecessor": "A"}}]},
    {"name": "T", "retentionPeriod": "1 day", "messages": [
        {"type": "D"}, {"type": "E", "releaseCondition": {"predecessor": "D"}}]}]}');
SELECT outcome FROM seqinbox_receive('B', 'b-13', 'declared', NULL);
SELECT outcome FROM seqinbox_receive('E', 'e-13', 'declared', NULL);
SELECT count(*) FROM seqinbox_next();
CREATE VIEW due AS
SELECT name, context_id, release_due_at <= clock_timestamp() AS due
  FROM sequence_instance WHERE release_due_at IS NOT NULL ORDER BY id;
SELECT * FROM due;
BEGIN;
SELECT seqinbox_declare('{"sequences": [{"name": "S", "retentionPeriod": "1 day", "messages": [{"type": "A"}, {"type": "B"}]}]}');
SELECT * FROM due;
SELECT idempotence_id FROM seqinbox_next();
ROLLBACK;
SELECT * FROM due;

-- a condition that is malformed, as only a change by hand can leave it: an
-- error that says what is wrong, for whoever needs the condition, and nobody
-- else
SELECT seqinbox_declare('{"sequences": [{"name": "S", "retentionPeriod": "1 day", "messages": [
    {"type": "A"}, {"type": "B", "releaseCondition": {"predecessor": "A"}}]}]}');
SELECT outcome FROM seqinbox_receive('B', 'b-20', 'malformed', NULL);
CREATE FUNCTION answer(condition jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
BEGIN
    UPDATE message_type_declaration SET release_condition = condition WHERE message_type = 'B';
    PERFORM seqinbox_receive('B', 'b-21', 'malformed', NULL);
    RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN SQLSTATE || ': ' || detail;
END
$$;
SELECT condition, answer(condition)
  FROM unnest(ARRAY['{"and": [{"predecessor": "A"}]}', '{"predecesor": "A"}', '{}', '[]', '"A"', '42', 'null',
                    '{"or": [{"predecessor": "A"}, {"and": [{"predecessor": 42}, {"predecessor": "A"}]}]}']::jsonb[])
       WITH ORDINALITY AS c (condition, n) ORDER BY n;
UPDATE message_type_declaration SET release_condition = '{"predecessor": null}' WHERE message_type = 'B';
\set VERBOSITY sqlstate
EXECUTE receive ('B', 'b-21');
EXECUTE receive_batch ('B', 'b-21');
EXECUTE releasable;
EXECUTE diagram;
SELECT count(*) FROM sequence_instance i, LATERAL seqinbox_next(i.id) WHERE i.context_id = 'malformed';
\set VERBOSITY default
EXECUTE receive ('A', 'a-21');
SELECT count(*) FROM sequenced_message WHERE idempotence_id = 'b-21';
-- mended
UPDATE message_type_declaration SET release_condition = '{"predecessor": "A"}' WHERE message_type = 'B';
EXECUTE receive ('B', 'b-21');

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA declaration_change CASCADE;
