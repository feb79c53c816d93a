-- Instances, as many as the variable instances says, with ten processed messages
-- each. (The IDs below 1000 are left to the windows.)

INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
SELECT 1000 + n, 'Orders', n, 'OPEN', now(), now() + interval '7 days'
  FROM generate_series(1, :instances) n;

INSERT INTO sequenced_message (message_type, idempotence_id, sequence_instance_id, state, created_at,
       topic, cluster_name, sequenced_message_id)
SELECT 'Order' || n, 'seed' || i.id || '-' || n, i.id, 'PROCESSED', now(), '', '', gen_random_uuid()
  FROM sequence_instance i, generate_series(0, 9) n
 WHERE i.name = 'Orders';

INSERT INTO sequential_inbox_idempotence (message_type, idempotence_id, sequence_instance_id, created_at)
SELECT message_type, idempotence_id, sequence_instance_id, created_at FROM sequenced_message;
