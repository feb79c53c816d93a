-- seqinbox_try_claim: as seqinbox_claim, but never waits. (Whether it does is
-- seen with several sessions, in the isolation tests.)
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('try_claim');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = try_claim;
SELECT seqinbox_open_instance('S', 'c', '1 day') AS instance \gset

-- free, then taken; the two ways to claim are the same claim
SELECT seqinbox_try_claim('A', 'a-1', :instance), seqinbox_try_claim('A', 'a-1', :instance) AS again,
       seqinbox_claim('A', 'a-1', :instance) AS claim;
SELECT seqinbox_claim('A', 'a-2', :instance), seqinbox_try_claim('A', 'a-2', :instance);
SELECT message_type, idempotence_id, sequence_instance_id = :instance AS instance
  FROM sequential_inbox_idempotence ORDER BY idempotence_id;

-- only the whole key is the key
SELECT seqinbox_try_claim('B', 'a-1', :instance), seqinbox_try_claim('A', 'a', :instance),
       seqinbox_try_claim('Aa', '-1', :instance), seqinbox_try_claim('A', 'A-1', :instance);

-- in a transaction: its own claim is decided, not in flight
BEGIN;
SELECT seqinbox_try_claim('A', 'a-3', :instance);
SELECT seqinbox_try_claim('A', 'a-3', :instance);
SELECT seqinbox_claim('A', 'a-4', :instance);
SELECT seqinbox_try_claim('A', 'a-4', :instance);
ROLLBACK;
SELECT seqinbox_try_claim('A', 'a-3', :instance), seqinbox_try_claim('A', 'a-4', :instance);

-- a claim that this transaction has freed is free
BEGIN;
DELETE FROM sequential_inbox_idempotence WHERE idempotence_id = 'a-3';
SELECT seqinbox_try_claim('A', 'a-3', :instance), seqinbox_try_claim('A', 'a-3', :instance) AS again;
COMMIT;
SELECT seqinbox_try_claim('A', 'a-3', :instance);

-- in savepoints
BEGIN;
SAVEPOINT s;
SELECT seqinbox_try_claim('A', 'a-5', :instance), seqinbox_try_claim('A', 'a-5', :instance) AS again;
ROLLBACK TO s;
SELECT seqinbox_try_claim('A', 'a-5', :instance);
SAVEPOINT t;
SELECT seqinbox_try_claim('A', 'a-6', :instance);
RELEASE t;
SELECT seqinbox_try_claim('A', 'a-6', :instance);
COMMIT;
SELECT seqinbox_try_claim('A', 'a-5', :instance), seqinbox_try_claim('A', 'a-6', :instance);

-- the transaction goes on as it was
BEGIN;
CREATE TABLE effect (id text);
DECLARE effects CURSOR FOR SELECT id FROM effect;
INSERT INTO effect SELECT seqinbox_try_claim('A', 'a-7', :instance);
SELECT seqinbox_try_claim('A', 'a-7', :instance);
FETCH effects;
COMMIT;
SELECT id FROM effect;

-- many in one statement
SELECT n, seqinbox_try_claim('B', 'b-' || n % 3, :instance)
  FROM generate_series(1, 4) AS n ORDER BY n;

-- it leaves no lock_timeout behind
SET lock_timeout = '7s';
BEGIN;
SELECT seqinbox_try_claim('A', 'a-8', :instance), seqinbox_try_claim('A', 'a-8', :instance) AS again;
SHOW lock_timeout;
SELECT seqinbox_try_claim('A', 'a-9', 999999);
ROLLBACK;
SHOW lock_timeout;
SELECT seqinbox_try_claim('A', 'a-8', :instance), seqinbox_try_claim('A', 'a-8', :instance) AS again;
SHOW lock_timeout;
RESET lock_timeout;

-- an instance that does not exist
SELECT seqinbox_try_claim('A', 'nowhere', 999999);
\echo :SQLSTATE
SELECT seqinbox_try_claim('A', 'nowhere', 0);
\echo :SQLSTATE
SELECT seqinbox_try_claim('A', 'nowhere', :instance);

-- NULL, nothing, too much
SELECT seqinbox_try_claim(NULL, 'x', :instance);
\echo :SQLSTATE
SELECT seqinbox_try_claim('A', NULL, :instance);
\echo :SQLSTATE
SELECT seqinbox_try_claim('', 'x', :instance);
\echo :SQLSTATE
SELECT seqinbox_try_claim('A', '', :instance);
\echo :SQLSTATE
SELECT seqinbox_try_claim(repeat('x', 513), 'x', :instance);
\echo :SQLSTATE
SELECT seqinbox_try_claim('A', repeat('x', 2049), :instance);
\echo :SQLSTATE
SELECT left(string_agg(md5(n::text), ''), 512) AS type,
       left(string_agg(md5((-n)::text), ''), 2048) AS id
  FROM generate_series(1, 64) AS n \gset
SELECT seqinbox_try_claim(:'type', :'id', :instance), seqinbox_try_claim(:'type', :'id', :instance) AS again,
       seqinbox_try_claim(:'type', left(:'id', 2047), :instance) AS shorter;

-- a conflict on another unique constraint is no duplicate but an error
CREATE UNIQUE INDEX unique_id ON sequential_inbox_idempotence (idempotence_id)
 WHERE idempotence_id = 'once';
SELECT seqinbox_try_claim('A', 'once', :instance);
SELECT seqinbox_try_claim('B', 'once', :instance);
\echo :SQLSTATE

-- a transaction that is read-only, even where the answer would be DUPLICATE
BEGIN READ ONLY;
SELECT seqinbox_try_claim('A', 'a-1', :instance);
\echo :SQLSTATE
ROLLBACK;

-- isolation levels
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT seqinbox_try_claim('A', 'repeatable', :instance),
       seqinbox_try_claim('A', 'repeatable', :instance) AS again,
       seqinbox_try_claim('A', 'a-1', :instance) AS committed;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT seqinbox_try_claim('A', 'serializable', :instance),
       seqinbox_try_claim('A', 'serializable', :instance) AS again,
       seqinbox_try_claim('A', 'a-1', :instance) AS committed;
COMMIT;

-- no inbox
SET search_path = try_claim_missing;
SELECT seqinbox_try_claim('A', 'a-1');
\echo :SQLSTATE
RESET search_path;

SET client_min_messages = warning;
DROP SCHEMA try_claim CASCADE;
