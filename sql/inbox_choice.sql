-- Which inbox a call uses: the first schema of search_path that holds the
-- claim table, in each call anew.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('inbox_one');
SELECT seqinbox_create_inbox('inbox_two');
CREATE SCHEMA inbox_none;
CREATE SCHEMA inbox_false;
RESET client_min_messages;
\set SHOW_CONTEXT never

-- the claims and records of both inboxes, whatever the path
CREATE VIEW inbox_none.claims AS
SELECT 'one' AS inbox, idempotence_id FROM inbox_one.sequential_inbox_idempotence
UNION ALL SELECT 'two', idempotence_id FROM inbox_two.sequential_inbox_idempotence
ORDER BY 1, 2;
CREATE VIEW inbox_none.records AS
SELECT 'one' AS inbox, idempotence_id, state, attempts FROM inbox_one.sequenced_message
UNION ALL SELECT 'two', idempotence_id, state, attempts FROM inbox_two.sequenced_message
ORDER BY 1, 2;

-- switched in one session
SET search_path = inbox_one;
SELECT seqinbox_claim('A', 'both'), seqinbox_try_claim('A', 'one');
SET search_path = inbox_two;
SELECT seqinbox_claim('A', 'both'), seqinbox_try_claim('A', 'two');
SET search_path = inbox_one;
SELECT seqinbox_claim('A', 'both'), seqinbox_try_claim('A', 'one'), seqinbox_claim('A', 'two');
SET search_path = inbox_none, inbox_two, inbox_one;
SELECT seqinbox_claim('A', 'three');
SELECT * FROM claims;

-- and in one transaction
BEGIN;
SET LOCAL search_path = inbox_one;
SELECT seqinbox_claim('A', 'transaction');
SAVEPOINT s;
SET LOCAL search_path = inbox_two;
SELECT seqinbox_claim('A', 'transaction');
ROLLBACK TO s;
SELECT seqinbox_claim('A', 'transaction');
SET LOCAL search_path = inbox_two;
SELECT seqinbox_claim('A', 'transaction');
COMMIT;
SELECT inbox FROM claims WHERE idempotence_id = 'transaction';

-- and between the rows of one statement
SELECT n, set_config('search_path', 'inbox_' || CASE WHEN n % 2 = 0 THEN 'two' ELSE 'one' END, false),
       seqinbox_claim('A', 'row')
  FROM generate_series(1, 4) AS n;
SET search_path = inbox_none;
SELECT inbox FROM claims WHERE idempotence_id = 'row';

-- every function goes the same way
SET search_path = inbox_one;
SELECT seqinbox_open_instance('S', 'c', '1 day') AS one \gset
SELECT seqinbox_store('A', 'both', :one, 'WAITING', 'value', NULL, '{h}', '{v}') AS id;
SET search_path = inbox_two;
SELECT seqinbox_open_instance('S', 'only two', '1 day') AS other \gset
SELECT seqinbox_open_instance('S', 'c', '1 day') AS two \gset
SELECT :one = :two AS same, (SELECT count(*) FROM sequence_instance WHERE id = :two) AS found;
SELECT count(*) AS records FROM seqinbox_lookup('A', 'both');
SELECT seqinbox_store('A', 'both', :two, 'WAITING') AS id;
SELECT seqinbox_fail_and_release(1);
SELECT state FROM seqinbox_lookup('A', 'both');
SET search_path = inbox_one;
SELECT state FROM seqinbox_lookup('A', 'both');
INSERT INTO inbox_two.sequence_declaration (name, retention_period) VALUES ('T', '1 day');
INSERT INTO inbox_two.message_type_declaration (message_type, sequence_name) VALUES ('B', 'T');
SELECT seqinbox_record_failure('B', 'b-1', 'c', 'error');
\echo :SQLSTATE
SET search_path = inbox_two;
SELECT seqinbox_record_failure('B', 'b-1', 'c', 'error') AS id;
SET search_path = inbox_none;
SELECT * FROM records;
SELECT inbox FROM claims WHERE idempotence_id = 'both';

-- prepared statements and functions follow the path as well
SET search_path = inbox_one;
PREPARE claim(text) AS SELECT seqinbox_claim('A', $1);
EXECUTE claim('prepared');
SET search_path = inbox_two;
EXECUTE claim('prepared');
SET plan_cache_mode = force_generic_plan;
EXECUTE claim('prepared');
SET search_path = inbox_one;
EXECUTE claim('prepared');
RESET plan_cache_mode;
CREATE FUNCTION inbox_none.claim_here(id text) RETURNS boolean LANGUAGE plpgsql
AS 'BEGIN RETURN seqinbox_claim(''A'', id); END';
CREATE FUNCTION inbox_none.claim_two(id text) RETURNS boolean LANGUAGE plpgsql SET search_path = inbox_two
AS 'BEGIN RETURN seqinbox_claim(''A'', id); END';
SELECT inbox_none.claim_here('function'), inbox_none.claim_two('function');
SELECT inbox_none.claim_here('function'), inbox_none.claim_two('function');
SET search_path = inbox_two;
SELECT inbox_none.claim_here('function');
SET search_path = inbox_none;
SELECT * FROM claims WHERE idempotence_id IN ('prepared', 'function');

-- a relation of the name that is no table does not make an inbox
CREATE VIEW inbox_false.sequential_inbox_idempotence AS SELECT * FROM inbox_two.sequential_inbox_idempotence;
SET search_path = inbox_false, inbox_one;
SELECT seqinbox_claim('A', 'view'), seqinbox_try_claim('A', 'view');
DROP VIEW inbox_false.sequential_inbox_idempotence;
CREATE SEQUENCE inbox_false.sequential_inbox_idempotence;
SELECT seqinbox_claim('A', 'sequence'), seqinbox_try_claim('A', 'sequence');
DROP SEQUENCE inbox_false.sequential_inbox_idempotence;
CREATE TYPE inbox_false.sequential_inbox_idempotence AS (message_type text, idempotence_id text);
SELECT seqinbox_claim('A', 'type'), seqinbox_try_claim('A', 'type');
DROP TYPE inbox_false.sequential_inbox_idempotence;
SELECT inbox, idempotence_id FROM inbox_none.claims WHERE idempotence_id IN ('view', 'sequence', 'type');

-- the other tables in an earlier schema capture nothing either
CREATE TABLE inbox_false.sequence_instance (LIKE inbox_one.sequence_instance INCLUDING ALL);
CREATE TABLE inbox_false.sequenced_message (LIKE inbox_one.sequenced_message INCLUDING ALL);
CREATE TABLE inbox_false.buffered_message (LIKE inbox_one.buffered_message INCLUDING ALL);
CREATE TABLE inbox_false.message_header (LIKE inbox_one.message_header INCLUDING ALL);
SELECT seqinbox_claim('A', 'earlier'),
       seqinbox_store('A', 'earlier', :one, 'WAITING', 'value', NULL, '{h}', '{v}') > 0 AS stored,
       seqinbox_open_instance('S', 'c', '1 day') = :one AS instance;
SELECT count(*) FROM inbox_false.sequence_instance
 UNION ALL SELECT count(*) FROM inbox_false.sequenced_message
 UNION ALL SELECT count(*) FROM inbox_false.buffered_message
 UNION ALL SELECT count(*) FROM inbox_false.message_header;

-- nor do temporary tables, which the server itself looks at first
SET search_path = inbox_one;
SELECT seqinbox_claim('A', 'before temporary');
CREATE TEMPORARY TABLE sequence_instance (LIKE inbox_one.sequence_instance INCLUDING ALL);
CREATE TEMPORARY TABLE sequenced_message (LIKE inbox_one.sequenced_message INCLUDING ALL);
CREATE TEMPORARY TABLE sequential_inbox_idempotence (LIKE inbox_one.sequential_inbox_idempotence INCLUDING ALL);
CREATE TEMPORARY TABLE buffered_message (LIKE inbox_one.buffered_message INCLUDING ALL);
CREATE TEMPORARY TABLE message_header (LIKE inbox_one.message_header INCLUDING ALL);
CREATE TEMPORARY TABLE sequence_declaration (LIKE inbox_one.sequence_declaration INCLUDING ALL);
CREATE TEMPORARY TABLE message_type_declaration (LIKE inbox_one.message_type_declaration INCLUDING ALL);
CREATE TEMPORARY SEQUENCE sequenced_message_sequence;
CREATE TEMPORARY SEQUENCE sequence_instance_sequence;
INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
VALUES (-1, 'S', 'temporary', 'OPEN', now(), now());
INSERT INTO sequence_declaration (name, retention_period) VALUES ('T', '1 day');
INSERT INTO message_type_declaration (message_type, sequence_name) VALUES ('B', 'T');
INSERT INTO sequential_inbox_idempotence VALUES ('A', 'temporary', -1, now());
INSERT INTO sequenced_message (id, message_type, cluster_name, topic, sequenced_message_id,
                               idempotence_id, state, created_at, sequence_instance_id)
VALUES (-1, 'A', '', '', gen_random_uuid(), 'temporary', 'PROCESSED', now(), -1);
SELECT seqinbox_claim('A', 'before temporary'), seqinbox_claim('A', 'temporary'),
       seqinbox_try_claim('A', 'temporary 2');
SELECT count(*) AS records FROM seqinbox_lookup('A', 'temporary');
SELECT seqinbox_open_instance('S', 'c', '1 day') = :one AS instance,
       seqinbox_open_instance('S', 'temporary', '1 day') > 0 AS created;
SELECT seqinbox_store('A', 'temporary', :one, 'WAITING', 'value', NULL, '{h}', '{v}') > 0 AS stored;
SELECT seqinbox_store('A', 'temporary', -1, 'WAITING');
\echo :SQLSTATE
SELECT seqinbox_fail_and_release(-1);
\echo :SQLSTATE
SELECT seqinbox_record_failure('B', 'b-1', 'c', 'error');
\echo :SQLSTATE
SET search_path = pg_temp, inbox_two;
SELECT seqinbox_claim('A', 'temporary'), seqinbox_try_claim('A', 'temporary 3');
SELECT seqinbox_record_failure('B', 'temporary', 'c', 'error') > 0 AS recorded;
SET search_path = inbox_none;
SELECT * FROM claims WHERE idempotence_id LIKE '%temporary%';
SELECT * FROM records WHERE idempotence_id = 'temporary';

-- the temporary schema alone is no inbox, under either of its names
SET search_path = pg_temp;
SELECT seqinbox_claim('A', 'temporary');
\echo :SQLSTATE
SELECT seqinbox_try_claim('A', 'temporary');
\echo :SQLSTATE
SELECT count(*) FROM seqinbox_lookup('A', 'temporary');
\echo :SQLSTATE
SELECT set_config('search_path', nspname, false) IS NOT NULL AS set
  FROM pg_namespace WHERE oid = pg_my_temp_schema();
\set VERBOSITY sqlstate
SELECT seqinbox_claim('A', 'temporary');
\set VERBOSITY default
-- nothing has changed there
SELECT (SELECT count(*) FROM pg_temp.sequence_instance) AS instances,
       (SELECT count(*) FROM pg_temp.sequential_inbox_idempotence) AS claims,
       (SELECT count(*) FROM pg_temp.sequenced_message WHERE state = 'PROCESSED') AS records,
       (SELECT count(*) FROM pg_temp.buffered_message) AS payloads,
       (SELECT count(*) FROM pg_temp.message_header) AS headers;
DISCARD TEMP;

-- a path of any length
DO $$
BEGIN
    FOR n IN 1..100 LOOP
        EXECUTE format('CREATE SCHEMA long_path_%s', n);
    END LOOP;
END
$$;
SELECT string_agg('long_path_' || n, ', ') AS path FROM generate_series(1, 100) AS n \gset
SET search_path = :path, inbox_two, inbox_one;
SELECT seqinbox_claim('A', 'long path');
SET search_path = :path;
\set VERBOSITY sqlstate
SELECT seqinbox_claim('A', 'long path');
\set VERBOSITY default
SELECT inbox, idempotence_id FROM inbox_none.claims WHERE idempotence_id = 'long path';

-- a schema that the caller may not use is passed over; "$user" is the caller
CREATE ROLE regress_seqinbox_two;
GRANT USAGE ON SCHEMA inbox_two TO regress_seqinbox_two;
GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA inbox_two TO regress_seqinbox_two;
SET search_path = inbox_one, inbox_two;
SET ROLE regress_seqinbox_two;
SELECT seqinbox_claim('A', 'role');
RESET ROLE;
SELECT seqinbox_claim('A', 'role');
SET ROLE regress_seqinbox_two;
SET search_path = inbox_one;
SELECT seqinbox_claim('A', 'role');
\echo :SQLSTATE
RESET ROLE;
ALTER SCHEMA inbox_two RENAME TO regress_seqinbox_two;
SET search_path = "$user", inbox_one;
SET ROLE regress_seqinbox_two;
SELECT seqinbox_claim('A', 'user');
RESET ROLE;
SELECT seqinbox_claim('A', 'user');
SELECT inbox, idempotence_id FROM inbox_none.claims WHERE idempotence_id IN ('role', 'user');

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA inbox_one, regress_seqinbox_two, inbox_none, inbox_false, :path CASCADE;
DROP ROLE regress_seqinbox_two;
