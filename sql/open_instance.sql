-- seqinbox_open_instance: finds the sequence instance of a context, or creates
-- it.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('open_instance');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = open_instance;
SET timezone = 'UTC';
INSERT INTO sequence_declaration (name, retention_period) VALUES ('Orders', '1 month 2 days');
CREATE VIEW instance AS
SELECT name, context_id, state, retain_until - created_at AS kept, closed_at, remove_after,
       pending_action, created_in_recording_mode, release_due_at
  FROM sequence_instance WHERE name <> 'seqinbox.idempotence' ORDER BY id;

-- a declared sequence: kept as its declaration says, whatever the caller says
SELECT seqinbox_open_instance('Orders', 'order-1') AS order_1 \gset
SELECT name, context_id, state, created_at + interval '1 month 2 days' = retain_until AS kept,
       closed_at, remove_after, pending_action, created_in_recording_mode, release_due_at
  FROM sequence_instance WHERE id = :order_1 \gx
SELECT seqinbox_open_instance('Orders', 'order-2', '1 hour') AS order_2 \gset
SELECT created_at + interval '1 month 2 days' = retain_until AS kept FROM sequence_instance WHERE id = :order_2;

-- another one: as the caller says
SELECT seqinbox_open_instance('Others', 'order-1', '90 minutes') AS other_1 \gset
SELECT name, context_id, kept FROM instance WHERE name = 'Others';
SELECT :order_1 <> :order_2 AND :order_1 <> :other_1 AND :order_2 <> :other_1 AS different;

-- once there, it is found, and stays as it is
SELECT seqinbox_open_instance('Orders', 'order-1') = :order_1 AS found,
       seqinbox_open_instance('Others', 'order-1', '1 year') = :other_1 AS other_found;
SELECT name, context_id, kept FROM instance WHERE name = 'Others';
UPDATE sequence_instance SET state = 'CLOSED', closed_at = now(), remove_after = now() WHERE id = :order_1;
SELECT seqinbox_open_instance('Orders', 'order-1') = :order_1 AS closed_found;
SELECT state, closed_at IS NOT NULL AS closed, remove_after IS NOT NULL AS ends
  FROM sequence_instance WHERE id = :order_1;
-- one that was removed is created anew
DELETE FROM sequence_instance WHERE id = :order_1;
SELECT seqinbox_open_instance('Orders', 'order-1') > :order_1 AS anew;
SELECT state FROM instance WHERE context_id = 'order-1' AND name = 'Orders';

-- a declaration counts from the next call on
UPDATE sequence_declaration SET retention_period = '3 days';
SELECT seqinbox_open_instance('Orders', 'order-3') > 0 AS opened;
INSERT INTO sequence_declaration (name, retention_period) VALUES ('Others', '4 days');
SELECT seqinbox_open_instance('Others', 'order-3', '1 hour') > 0 AS opened;
SELECT name, kept FROM instance WHERE context_id = 'order-3';
DELETE FROM sequence_declaration WHERE name = 'Others';
SELECT seqinbox_open_instance('Others', 'order-4');
\echo :SQLSTATE

-- the context and the name are taken exactly
SELECT count(DISTINCT id) AS instances
  FROM (VALUES ('Others', 'X'), ('Others', 'x'), ('Others', 'x '), ('others', 'x'), ('Other', 'sx')) AS c (name, context),
       LATERAL seqinbox_open_instance(name, context, '1 day') AS id;

-- undone with the transaction
BEGIN;
SELECT seqinbox_open_instance('Orders', 'undone') > 0 AS opened;
SAVEPOINT s;
SELECT seqinbox_open_instance('Orders', 'undone too') > 0 AS opened;
ROLLBACK TO s;
SELECT context_id FROM instance WHERE context_id LIKE 'undone%';
ROLLBACK;
SELECT context_id FROM instance WHERE context_id LIKE 'undone%';

-- created_at is the moment of the call, not of the transaction's begin
BEGIN;
SELECT pg_sleep(0.01);
SELECT clock_timestamp() AS before \gset
SELECT seqinbox_open_instance('Orders', 'moment') AS id \gset
SELECT created_at BETWEEN :'before' AND clock_timestamp() AS created FROM sequence_instance WHERE id = :id;
COMMIT;

-- isolation levels
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT seqinbox_open_instance('Orders', 'repeatable') = seqinbox_open_instance('Orders', 'repeatable') AS same;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT seqinbox_open_instance('Orders', 'serializable') = seqinbox_open_instance('Orders', 'serializable') AS same;
COMMIT;

-- not declared, and no period
SELECT seqinbox_open_instance('Unknown', 'order-1');
\echo :SQLSTATE
SELECT seqinbox_open_instance('orders', 'order-1');
\echo :SQLSTATE
SELECT seqinbox_open_instance('Unknown', 'order-1', NULL);
\echo :SQLSTATE

-- the name of the windows is reserved
SELECT seqinbox_open_instance('seqinbox.idempotence', 'order-1', '1 day');
\echo :SQLSTATE
SELECT seqinbox_open_instance('seqinbox.idempotence', 'order-1');
\echo :SQLSTATE

-- a period has to be one
SELECT seqinbox_open_instance('Unknown', 'order-1', '0');
\echo :SQLSTATE
SELECT seqinbox_open_instance('Unknown', 'order-1', '-1 day');
\echo :SQLSTATE
SELECT seqinbox_open_instance('Unknown', 'order-1', '1 month -30 days');
\echo :SQLSTATE
SELECT seqinbox_open_instance('Orders', 'order-1', '-1 day');
\echo :SQLSTATE
SELECT seqinbox_open_instance('Unknown', 'order-1', '300000 years');
\echo :SQLSTATE
SELECT seqinbox_open_instance('Unknown', 'shortest', '1 microsecond') > 0 AS opened;

-- NULL, nothing, too much
SELECT seqinbox_open_instance(NULL, 'order-1', '1 day');
\echo :SQLSTATE
SELECT seqinbox_open_instance('Orders', NULL, '1 day');
\echo :SQLSTATE
SELECT seqinbox_open_instance('', 'order-1', '1 day');
\echo :SQLSTATE
SELECT seqinbox_open_instance('Orders', '', '1 day');
\echo :SQLSTATE
SELECT seqinbox_open_instance(repeat('x', 513), 'order-1', '1 day');
\echo :SQLSTATE
SELECT seqinbox_open_instance('Orders', repeat('x', 2049), '1 day');
\echo :SQLSTATE
SELECT left(string_agg(md5(n::text), ''), 512) AS name,
       left(string_agg(md5((-n)::text), ''), 2048) AS context
  FROM generate_series(1, 64) AS n \gset
SELECT seqinbox_open_instance(:'name', :'context', '1 day') = seqinbox_open_instance(:'name', :'context', '1 day') AS same;

BEGIN READ ONLY;
SELECT seqinbox_open_instance('Orders', 'order-2');
\echo :SQLSTATE
ROLLBACK;
SELECT count(*) FROM instance WHERE name IN ('Unknown', 'orders', '');

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA open_instance CASCADE;
