-- Fills an empty inbox with as many claims as the variable claims says, ten to a
-- context, each with its record. Keys, foreign keys and indexes are made when
-- the rows are there.

SET synchronous_commit = off;
SET maintenance_work_mem = '1GB';

CREATE TEMPORARY TABLE later AS
SELECT CASE contype WHEN 'f' THEN 3 ELSE 1 END AS place,
       format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) AS drop_it,
       format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) AS make_it
  FROM pg_constraint
 WHERE connamespace = current_schema()::regnamespace AND contype IN ('f', 'p', 'u');
INSERT INTO later
SELECT 2, format('DROP INDEX %s', indexrelid::regclass), pg_get_indexdef(indexrelid)
  FROM pg_index JOIN pg_class c ON c.oid = indexrelid
 WHERE relnamespace = current_schema()::regnamespace
   AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid);

SELECT drop_it FROM later ORDER BY place DESC \gexec

INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
SELECT 1000 + n, 'Orders', hashint8extended(n, 1), 'OPEN', now(), now() + interval '7 days'
  FROM generate_series(0, :claims / 10 - 1) n;
SELECT setval('sequence_instance_sequence', 1000 + :claims / 10);

INSERT INTO sequenced_message (message_type, idempotence_id, sequence_instance_id, state, created_at,
       topic, cluster_name, sequenced_message_id)
SELECT 'Order' || n % 10, hashint8extended(n, 2), 1000 + n / 10, 'PROCESSED', now(), '', '', gen_random_uuid()
  FROM generate_series(0, :claims - 1) n;

INSERT INTO sequential_inbox_idempotence (message_type, idempotence_id, sequence_instance_id, created_at)
SELECT message_type, idempotence_id, sequence_instance_id, created_at FROM sequenced_message;

SELECT make_it FROM later ORDER BY place \gexec

VACUUM (ANALYZE) sequence_instance, sequenced_message, sequential_inbox_idempotence;
