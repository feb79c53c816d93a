-- What a client-side sequential inbox sends. Its driver sends BEGIN along with
-- the first statement of a transaction. The transaction that inserts the record
-- runs on a second connection, while the one with the claim is open; here, on one
-- connection, it comes after: the same statements, commits and round trips.
\set n :n + 1
\set id hash(:client_id * 100000000 + :n, :turn)
\set context hash(:client_id * 100000000 + :n / 10, :turn)
\set type :n % 10

-- 1: the instance
BEGIN;
SELECT coalesce(max(id), 0) AS instance FROM sequence_instance WHERE name = 'Orders' AND context_id = :context \gset
\sleep :network us
\if :instance = 0
INSERT INTO sequence_instance (name, context_id, state, created_at, retain_until) VALUES ('Orders', :context, 'OPEN', now(), now() + interval '7 days') RETURNING id AS instance \gset
\sleep :network us
\endif
COMMIT;
\sleep :network us

-- 2: claim and look-ups; the record, in a transaction of its own
\startpipeline
BEGIN;
INSERT INTO sequential_inbox_idempotence (message_type, idempotence_id, sequence_instance_id, created_at) VALUES ('Order' || :type, :id, :instance, now()) ON CONFLICT (message_type, idempotence_id) DO NOTHING;
\endpipeline
\sleep :network us
SELECT id, state, sequence_instance_id FROM sequenced_message WHERE message_type = 'Order' || :type AND idempotence_id = :id;
\sleep :network us
SELECT message_type FROM sequenced_message WHERE sequence_instance_id = :instance AND state = 'PROCESSED';
\sleep :network us
COMMIT;
\sleep :network us
\startpipeline
BEGIN;
INSERT INTO sequenced_message (message_type, cluster_name, topic, sequenced_message_id, idempotence_id, state, created_at, state_changed_at, sequence_instance_id) VALUES ('Order' || :type, 'cluster', 'orders', gen_random_uuid(), :id, 'PROCESSED', now(), now(), :instance);
\endpipeline
\sleep :network us
COMMIT;
\sleep :network us

-- 3: does something wait?
\startpipeline
BEGIN;
SELECT id, state, pending_action FROM sequence_instance WHERE id = :instance FOR UPDATE;
\endpipeline
\sleep :network us
SELECT id, message_type, idempotence_id, pending_action FROM sequenced_message WHERE sequence_instance_id = :instance AND state = 'WAITING' ORDER BY created_at;
\sleep :network us
COMMIT;
\sleep :network us
