-- Open instances, as many as the variable instances says. The IDs below 1000 are
-- left to the windows.

INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
SELECT 1000 + n, 'Orders', n, 'OPEN', now(), now() + interval '7 days'
  FROM generate_series(0, :instances - 1) n;
SELECT setval('sequence_instance_sequence', 1000 + :instances);
