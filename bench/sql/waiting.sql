-- In each instance, as many waiting messages as the variable waiting says. All of
-- them can be released.

INSERT INTO sequenced_message (id, message_type, idempotence_id, sequence_instance_id, state, created_at,
       topic, cluster_name, sequenced_message_id)
SELECT nextval('sequenced_message_sequence'), 'OrderDone', 'waiting' || i.id || '-' || n, i.id, 'WAITING',
       now() + n * interval '1 microsecond', '', '', gen_random_uuid()
  FROM sequence_instance i, generate_series(1, :waiting) n
 WHERE i.name = 'Orders';

INSERT INTO sequential_inbox_idempotence (message_type, idempotence_id, sequence_instance_id, created_at)
SELECT message_type, idempotence_id, sequence_instance_id, created_at
  FROM sequenced_message WHERE state = 'WAITING';

INSERT INTO buffered_message (sequence_instance_id, sequenced_message_id, message_value)
SELECT sequence_instance_id, id, '{"order": 17}' FROM sequenced_message WHERE state = 'WAITING';

UPDATE sequence_instance SET release_due_at = now() WHERE name = 'Orders';

VACUUM (ANALYZE) sequence_instance, sequenced_message, sequential_inbox_idempotence, buffered_message;
