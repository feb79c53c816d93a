-- In each instance, a processed message of each of ten types.

INSERT INTO sequenced_message (message_type, idempotence_id, sequence_instance_id, state, created_at,
       topic, cluster_name, sequenced_message_id)
SELECT 'Order' || n, 'seed' || i.id || '-' || n, i.id, 'PROCESSED', now(), '', '', gen_random_uuid()
  FROM sequence_instance i, generate_series(0, 9) n
 WHERE i.name = 'Orders';

INSERT INTO sequential_inbox_idempotence (message_type, idempotence_id, sequence_instance_id, created_at)
SELECT message_type, idempotence_id, sequence_instance_id, created_at FROM sequenced_message;
