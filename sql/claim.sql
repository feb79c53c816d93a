-- seqinbox_claim: for one message type and idempotence ID, one transaction
-- wins.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('claim');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = claim;
SELECT seqinbox_open_instance('S', 'c', '1 day') AS instance \gset
SELECT seqinbox_open_instance('S', 'other', '1 day') AS other_instance \gset

-- the first wins, every later one is a duplicate
SELECT seqinbox_claim('A', 'a-1', :instance);
SELECT seqinbox_claim('A', 'a-1', :instance);
SELECT message_type, idempotence_id, sequence_instance_id = :instance AS instance
  FROM sequential_inbox_idempotence;

-- the key is type and ID, exactly; the instance has no part in it
SELECT seqinbox_claim('A', 'a-1', :other_instance) AS other_instance,
       seqinbox_claim('A', 'a-1') AS no_instance,
       seqinbox_claim('A', 'A-1', :instance) AS upper_case,
       seqinbox_claim('A', 'a-1 ', :instance) AS trailing_space,
       seqinbox_claim('A.B', 'a-1', :instance) AS other_type,
       seqinbox_claim('Aa', '-1', :instance) AS shifted;

-- many in one statement, with a duplicate among them
SELECT n, seqinbox_claim('B', 'b-' || n % 3, :instance)
  FROM generate_series(1, 4) AS n ORDER BY n;

-- within a transaction its own claim is a claim, and a duplicate does no harm
BEGIN;
SELECT seqinbox_claim('A', 'a-2', :instance);
SELECT seqinbox_claim('A', 'a-2', :instance);
SELECT seqinbox_claim('A', 'a-1', :instance);
SELECT seqinbox_claim('A', 'a-3', :instance);
COMMIT;
SELECT idempotence_id FROM sequential_inbox_idempotence
 WHERE message_type = 'A' AND idempotence_id IN ('a-2', 'a-3') ORDER BY idempotence_id;

-- a rollback frees the claim
BEGIN;
SELECT seqinbox_claim('A', 'a-4', :instance);
ROLLBACK;
BEGIN;
SELECT seqinbox_claim('A', 'a-4', :instance);
SELECT 1 / 0;
COMMIT;
SELECT seqinbox_claim('A', 'a-4', :instance);

-- so does a rollback to a savepoint, but only for the claims made since
BEGIN;
SELECT seqinbox_claim('A', 'before', :instance);
SAVEPOINT s;
SELECT seqinbox_claim('A', 'within', :instance);
ROLLBACK TO s;
SELECT seqinbox_claim('A', 'before', :instance), seqinbox_claim('A', 'within', :instance);
SAVEPOINT t;
SELECT seqinbox_claim('A', 'released', :instance);
RELEASE t;
COMMIT;
SELECT seqinbox_claim('A', 'before', :instance), seqinbox_claim('A', 'within', :instance),
       seqinbox_claim('A', 'released', :instance);

-- an error that is caught frees the claims of its block
DO $$
BEGIN
    IF NOT seqinbox_claim('A', 'caught') THEN
        RAISE 'duplicate';
    END IF;
    RAISE division_by_zero;
EXCEPTION
    WHEN division_by_zero THEN
        RAISE NOTICE 'again: %', seqinbox_claim('A', 'caught');
END
$$;

-- created_at is the moment of the claim, not of the transaction's begin
BEGIN;
SELECT pg_sleep(0.01);
SELECT clock_timestamp() AS before \gset
SELECT seqinbox_claim('A', 'moment', :instance);
SELECT created_at > now() AS since_begin,
       created_at BETWEEN :'before' AND clock_timestamp() AS moment
  FROM sequential_inbox_idempotence WHERE idempotence_id = 'moment';
COMMIT;

-- an instance that does not exist
SELECT seqinbox_claim('A', 'nowhere', 999999);
\echo :SQLSTATE
SELECT seqinbox_claim('A', 'nowhere', 0);
\echo :SQLSTATE
SELECT seqinbox_claim('A', 'nowhere', -9223372036854775808);
\echo :SQLSTATE
SELECT seqinbox_claim('A', 'nowhere', :instance);
-- a duplicate is one wherever it is said to belong
SELECT seqinbox_claim('A', 'nowhere', 999999);
\echo :SQLSTATE

-- claims end with their instance
INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
VALUES (5000, 'S', 'removed', 'OPEN', now(), now());
SELECT seqinbox_claim('A', 'removed', 5000);
DELETE FROM sequence_instance WHERE id = 5000;
SELECT seqinbox_claim('A', 'removed', 5000);
\echo :SQLSTATE
SELECT seqinbox_claim('A', 'removed', :instance);

-- NULL, nothing, too much
SELECT seqinbox_claim(NULL, 'x', :instance);
\echo :SQLSTATE
SELECT seqinbox_claim('A', NULL, :instance);
\echo :SQLSTATE
SELECT seqinbox_claim('', 'x', :instance);
\echo :SQLSTATE
SELECT seqinbox_claim('A', '', :instance);
\echo :SQLSTATE
SELECT seqinbox_claim(repeat('x', 513), 'x', :instance);
\echo :SQLSTATE
SELECT seqinbox_claim('A', repeat('x', 2049), :instance);
\echo :SQLSTATE

-- the longest type with the longest ID, which no index could compress
SELECT left(string_agg(md5(n::text), ''), 512) AS type,
       left(string_agg(md5((-n)::text), ''), 2048) AS id
  FROM generate_series(1, 64) AS n \gset
SELECT octet_length(:'type') AS type, octet_length(:'id') AS id;
SELECT seqinbox_claim(:'type', :'id', :instance), seqinbox_claim(:'type', :'id', :instance) AS again,
       seqinbox_claim(:'type', left(:'id', 2047), :instance) AS shorter;

-- arguments from a table, compressed or stored out of line
CREATE TABLE delivery (type text, id text);
ALTER TABLE delivery ALTER COLUMN id SET STORAGE EXTERNAL;
INSERT INTO delivery VALUES ('A', repeat('y', 2048)), ('A', repeat('y', 2048)), (repeat('x', 400), 'z');
SELECT length(type), length(id), seqinbox_claim(type, id, :instance) FROM delivery;

-- a conflict on another unique constraint is no duplicate but an error
CREATE UNIQUE INDEX unique_id ON sequential_inbox_idempotence (idempotence_id)
 WHERE idempotence_id = 'once';
SELECT seqinbox_claim('A', 'once', :instance);
SELECT seqinbox_claim('A', 'once', :instance);
SELECT seqinbox_claim('B', 'once', :instance);
\echo :SQLSTATE

-- a transaction that is read-only, also for a duplicate
BEGIN READ ONLY;
SELECT seqinbox_claim('A', 'read only', :instance);
\echo :SQLSTATE
ROLLBACK;
BEGIN READ ONLY;
SELECT seqinbox_claim('A', 'a-1');
\echo :SQLSTATE
ROLLBACK;

-- isolation levels: each sees its own claim and what was committed before
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT seqinbox_claim('A', 'repeatable', :instance), seqinbox_claim('A', 'repeatable', :instance) AS again,
       seqinbox_claim('A', 'a-1', :instance) AS committed;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT seqinbox_claim('A', 'serializable', :instance), seqinbox_claim('A', 'serializable', :instance) AS again,
       seqinbox_claim('A', 'a-1', :instance) AS committed;
COMMIT;

-- no inbox
SET search_path = claim_missing, public;
SELECT seqinbox_claim('A', 'a-1');
\echo :SQLSTATE
SET search_path = '';
SELECT seqinbox_claim('A', 'a-1');
\echo :SQLSTATE
-- what is wrong with the arguments comes first
SELECT seqinbox_claim('A', NULL);
\echo :SQLSTATE
RESET search_path;

SET client_min_messages = warning;
DROP SCHEMA claim CASCADE;
