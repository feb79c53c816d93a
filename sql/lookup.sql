-- seqinbox_lookup: the one record that counts for a message, however many
-- history left, and what the other functions do with such duplicates.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('lookup');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = lookup;
INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
VALUES (1001, 'S', 'one', 'OPEN', now(), now()), (1002, 'S', 'two', 'OPEN', now(), now());

-- records as history left them: id, idempotence ID, state, day, attempts
CREATE FUNCTION history(id bigint, idempotence_id text, state text, day integer, attempts integer DEFAULT 0,
                        message_type text DEFAULT 'A', instance bigint DEFAULT 1001) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO sequenced_message (id, message_type, cluster_name, topic, sequenced_message_id,
                                   idempotence_id, state, created_at, attempts, sequence_instance_id)
    VALUES (id, message_type, '', '', gen_random_uuid(),
            idempotence_id, state, timestamptz '2024-01-01 00:00Z' + day * interval '1 day', attempts, instance)
$$;

-- no record
SELECT * FROM seqinbox_lookup('A', 'none');
SELECT count(*) FROM seqinbox_lookup('A', 'none');

-- one record, in each state, with all that is returned
SELECT history(101, 'processed', 'PROCESSED', 1), history(102, 'waiting', 'WAITING', 2, 0, 'A', 1002),
       history(103, 'failed', 'FAILED', 3, 7);
SELECT id, state, sequence_instance_id, attempts, created_at AT TIME ZONE 'UTC' AS created_at
  FROM unnest('{processed,waiting,failed}'::text[]) AS key, seqinbox_lookup('A', key);

-- the key is type and ID
SELECT history(104, 'processed', 'FAILED', 1, 0, 'B');
SELECT id FROM seqinbox_lookup('A', 'processed');
SELECT id FROM seqinbox_lookup('B', 'processed');
SELECT id FROM seqinbox_lookup('B', 'waiting');
SELECT id FROM seqinbox_lookup('A', 'Processed');

-- duplicates: PROCESSED before WAITING before FAILED, whichever is newer
SELECT history(201, 'PWF', 'PROCESSED', 1), history(202, 'PWF', 'WAITING', 2), history(203, 'PWF', 'FAILED', 3);
SELECT history(211, 'FWP', 'FAILED', 1), history(212, 'FWP', 'WAITING', 2), history(213, 'FWP', 'PROCESSED', 3);
SELECT history(221, 'PF', 'PROCESSED', 1), history(222, 'PF', 'FAILED', 2);
SELECT history(231, 'WF', 'WAITING', 1), history(232, 'WF', 'FAILED', 2);
-- then the newest by created_at
SELECT history(241, 'PP', 'PROCESSED', 2), history(242, 'PP', 'PROCESSED', 1);
SELECT history(251, 'FF', 'FAILED', 2), history(252, 'FF', 'FAILED', 3), history(253, 'FF', 'FAILED', 1);
SELECT history(261, 'WW', 'WAITING', 1), history(262, 'WW', 'WAITING', 2);
-- then by id
SELECT history(272, 'same moment', 'FAILED', 1), history(273, 'same moment', 'FAILED', 1),
       history(271, 'same moment', 'FAILED', 1);
SELECT key, l.id, l.state
  FROM unnest('{PWF,FWP,PF,WF,PP,FF,WW,same moment}'::text[]) AS key, seqinbox_lookup('A', key) AS l;

-- it sees what its own transaction wrote
BEGIN;
SELECT seqinbox_store('A', 'own', 1001, 'FAILED') > 0 AS stored;
SELECT state, attempts FROM seqinbox_lookup('A', 'own');
SELECT seqinbox_store('A', 'own', 1001, 'PROCESSED') > 0 AS stored;
SELECT state, attempts FROM seqinbox_lookup('A', 'own');
ROLLBACK;
SELECT count(*) FROM seqinbox_lookup('A', 'own');

-- it reads only
BEGIN READ ONLY;
SELECT id FROM seqinbox_lookup('A', 'PF');
COMMIT;

-- in the select list, in a join, more than once, and without being read to
-- its end
SELECT (seqinbox_lookup('A', 'PF')).id;
SELECT a.id, b.id FROM seqinbox_lookup('A', 'PF') AS a, seqinbox_lookup('A', 'WF') AS b;
SELECT k, l.id FROM unnest('{PF,none,WF}'::text[]) AS k LEFT JOIN LATERAL seqinbox_lookup('A', k) AS l ON true;
SELECT seqinbox_lookup('A', 'PF') IS NOT NULL AS found LIMIT 1;

-- to store over duplicates changes the one that counts, and only that
SELECT seqinbox_store('A', 'PF', 1001, 'PROCESSED') AS id;
SELECT seqinbox_store('A', 'PF', 1001, 'FAILED');
\echo :SQLSTATE
SELECT seqinbox_store('A', 'WF', 1001, 'PROCESSED') AS id;
SELECT seqinbox_store('A', 'FF', 1001, 'FAILED', error => 'again') AS id;
SELECT seqinbox_store('A', 'same moment', 1001, 'WAITING') AS id;
SELECT id, state, attempts FROM sequenced_message
 WHERE idempotence_id IN ('PF', 'WF', 'FF', 'same moment') ORDER BY id;

-- a duplicate that does not count can be failed by its id
SELECT seqinbox_fail_and_release(262);
SELECT id FROM seqinbox_lookup('A', 'WW');

-- NULL, nothing, too much
SELECT seqinbox_lookup(NULL, 'x');
\echo :SQLSTATE
SELECT seqinbox_lookup('A', NULL);
\echo :SQLSTATE
SELECT seqinbox_lookup('', 'x');
\echo :SQLSTATE
SELECT seqinbox_lookup('A', '');
\echo :SQLSTATE
SELECT seqinbox_lookup(repeat('x', 513), 'x');
\echo :SQLSTATE
SELECT seqinbox_lookup('A', repeat('x', 2049));
\echo :SQLSTATE
SELECT count(*) FROM seqinbox_lookup(repeat('x', 512), repeat('x', 2048));

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA lookup CASCADE;
