-- Closed instances, as many as the variable instances says, whose retention is
-- over, with ten processed messages each.

INSERT INTO sequence_instance (id, name, context_id, state, created_at, closed_at, retain_until)
SELECT 1000 + n, 'Orders', 'expired' || n, 'CLOSED', now() - interval '10 days', now() - interval '10 days',
       now() - interval '3 days'
  FROM generate_series(0, :instances - 1) n;
SELECT setval('sequence_instance_sequence', 1000 + :instances);

INSERT INTO sequenced_message (message_type, idempotence_id, sequence_instance_id, state, created_at,
       topic, cluster_name, sequenced_message_id)
SELECT 'Order' || n % 10, hashint8extended(n, 2), 1000 + n / 10, 'PROCESSED', now() - interval '10 days', '', '',
       gen_random_uuid()
  FROM generate_series(0, :instances * 10 - 1) n;

INSERT INTO sequential_inbox_idempotence (message_type, idempotence_id, sequence_instance_id, created_at)
SELECT message_type, idempotence_id, sequence_instance_id, created_at FROM sequenced_message;

VACUUM (ANALYZE) sequence_instance, sequenced_message, sequential_inbox_idempotence;
CHECKPOINT;
