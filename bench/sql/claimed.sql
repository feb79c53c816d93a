-- A hundred thousand claims, with IDs from 0 on.

INSERT INTO sequential_inbox_idempotence (message_type, idempotence_id, sequence_instance_id, created_at)
SELECT 'Order0', n, 1000, now() FROM generate_series(0, 99999) n;

VACUUM (ANALYZE) sequential_inbox_idempotence;
