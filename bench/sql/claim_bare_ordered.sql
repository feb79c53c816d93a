-- As claim_bare.sql, but each ID is greater than the one before.
\set n :n + 1
\set id 4000000000000000000 + :turn * 10000000000 + :client_id * 100000000 + :n
INSERT INTO sequential_inbox_idempotence (message_type, idempotence_id, sequence_instance_id, created_at) VALUES ('Order0', :id, 1000 + :client_id, now()) ON CONFLICT (message_type, idempotence_id) DO NOTHING;
