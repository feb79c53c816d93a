-- Claims without sequencing: they hang on windows, instances of a reserved
-- sequence, one set per day.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
LOAD 'seqinbox';
SELECT boot_val, unit FROM pg_settings WHERE name = 'seqinbox.idempotence_retention';
SET seqinbox.idempotence_retention = '7d';
SELECT seqinbox_create_inbox('idempotence_only');
RESET client_min_messages;
SET search_path = idempotence_only;

-- the instance of each claim, and how long it is kept at the least; the window
-- of a day ends with the day
CREATE VIEW claimed AS
SELECT c.idempotence_id, i.name, i.state, i.closed_at IS NOT NULL AS closed,
       split_part(i.context_id, '/', 2) AS retention,
       split_part(i.context_id, '/', 3) LIKE 'pid%' AS private,
       date_trunc('day', c.created_at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' + interval '24 hours'
       + split_part(i.context_id, '/', 2)::interval = i.retain_until AS kept,
       date_trunc('day', c.created_at AT TIME ZONE 'UTC')
       = split_part(i.context_id, '/', 1)::timestamp AS today
  FROM sequential_inbox_idempotence c JOIN sequence_instance i ON i.id = c.sequence_instance_id;

-- the windows were made ahead, so a claim makes none
SELECT count(*) AS windows FROM sequence_instance \gset
SELECT seqinbox_claim('A', 'week'), seqinbox_claim('A', 'week') AS again;
SELECT * FROM claimed;
SELECT count(*) = :windows AS none_made FROM sequence_instance;
BEGIN;
SELECT seqinbox_claim('A', 'undone');
ROLLBACK;
SELECT seqinbox_claim('A', 'undone');
DELETE FROM sequential_inbox_idempotence;

-- a session with another retention uses windows of its own
SET seqinbox.idempotence_retention = '36h';
SHOW seqinbox.idempotence_retention;
SELECT seqinbox_claim('A', '36 hours'), seqinbox_claim('A', '36 hours') AS again;
SELECT seqinbox_claim('A', '36 hours more');
SET seqinbox.idempotence_retention = '1s';
SELECT seqinbox_try_claim('A', 'second'), seqinbox_try_claim('A', 'second') AS again;
-- the longest; also for what was claimed with a shorter one
SET seqinbox.idempotence_retention = 2147483647;
SELECT seqinbox_claim('A', 'long'), seqinbox_claim('A', '36 hours');
SET seqinbox.idempotence_retention = '7d';
SELECT * FROM claimed ORDER BY idempotence_id COLLATE "C";
-- one window for the two claims of the same retention
SELECT count(*) - :windows AS made FROM sequence_instance;

-- windows with another retention are made ahead as well
SET seqinbox.idempotence_retention = '2h';
SET client_min_messages = warning;
SELECT seqinbox_create_inbox();
RESET client_min_messages;
SELECT count(*) = :windows AS made FROM sequence_instance WHERE context_id LIKE '%/7200s/%';
SELECT seqinbox_claim('A', '2 hours');
SELECT * FROM claimed WHERE idempotence_id = '2 hours';
SET seqinbox.idempotence_retention = '7d';

-- it works also when nobody made the windows ahead
DELETE FROM sequence_instance;
SELECT count(*) AS claims FROM sequential_inbox_idempotence;
BEGIN;
SELECT seqinbox_claim('A', 'rolled back');
SELECT * FROM claimed;
ROLLBACK;
SELECT seqinbox_claim('A', 'first'), seqinbox_claim('A', 'first') AS again;
SELECT seqinbox_claim('A', 'second'), seqinbox_try_claim('A', 'second') AS again;
SELECT * FROM claimed ORDER BY idempotence_id COLLATE "C";
SELECT count(*) AS windows FROM sequence_instance;
DELETE FROM sequence_instance;
SELECT seqinbox_try_claim('A', 'first'), seqinbox_try_claim('A', 'first') AS again;
SELECT * FROM claimed;
DELETE FROM sequence_instance;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) FROM sequence_instance;
SELECT seqinbox_claim('A', 'first'), seqinbox_claim('A', 'first') AS again;
COMMIT;
SELECT * FROM claimed;

-- create_inbox makes them again, and they are used
SET client_min_messages = warning;
SELECT seqinbox_create_inbox();
RESET client_min_messages;
SELECT count(*) - 1 = :windows AS made FROM sequence_instance;
SELECT seqinbox_claim('A', 'third');
SELECT * FROM claimed WHERE idempotence_id = 'third';

-- values that the setting refuses (how the range is shown depends on the version)
\set VERBOSITY sqlstate
SET seqinbox.idempotence_retention = 0;
\echo :SQLSTATE
\set VERBOSITY default
SET seqinbox.idempotence_retention = 'a week';
\echo :SQLSTATE

SET client_min_messages = warning;
DROP SCHEMA idempotence_only CASCADE;
