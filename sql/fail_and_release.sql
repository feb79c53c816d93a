-- seqinbox_fail_and_release: a buffered message failed; its claim is free.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('fail_and_release');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = fail_and_release;
INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
VALUES (1001, 'S', 'one', 'OPEN', now(), now());

-- a message that waited: failed, and its claim is free, but no other
SELECT seqinbox_claim('A', 'a-1', 1001), seqinbox_claim('A', 'a-2', 1001), seqinbox_claim('B', 'a-1', 1001);
SELECT seqinbox_store('A', 'a-1', 1001, 'WAITING', 'value', 'key', '{h}', '{v}') AS id;
SELECT seqinbox_fail_and_release(1, 'no stock');
SELECT state, attempts, last_error, retry_at, state_changed_at IS NOT NULL AS changed, sequence_instance_id
  FROM sequenced_message;
SELECT message_type, idempotence_id FROM sequential_inbox_idempotence ORDER BY 1, 2;

-- the payload is kept for the retry
SELECT convert_from(message_key, 'UTF8') AS key, convert_from(message_value, 'UTF8') AS value
  FROM buffered_message;
SELECT header_name FROM message_header;

-- a resend claims, and fails again
SELECT seqinbox_claim('A', 'a-1', 1001);
SELECT seqinbox_fail_and_release(1, 'no stock yet');
SELECT state, attempts, last_error FROM seqinbox_lookup('A', 'a-1') JOIN sequenced_message USING (id, state, attempts);

-- without a claim: false and a warning, but it counts
SELECT seqinbox_fail_and_release(1, 'no claim');
SELECT state, attempts, last_error FROM sequenced_message;

-- all in the caller's transaction
BEGIN;
SELECT seqinbox_claim('A', 'a-1', 1001);
COMMIT;
BEGIN;
SELECT seqinbox_fail_and_release(1, 'undone');
SELECT seqinbox_claim('A', 'a-1', 1001);
ROLLBACK;
SELECT attempts, last_error FROM sequenced_message;
SELECT seqinbox_claim('A', 'a-1', 1001);
-- also claim, store and release in one
BEGIN;
SELECT seqinbox_claim('A', 'a-3', 1001);
SELECT seqinbox_store('A', 'a-3', 1001, 'WAITING') AS id \gset
SELECT seqinbox_fail_and_release(:id);
COMMIT;
SELECT state, attempts, last_error FROM sequenced_message WHERE idempotence_id = 'a-3';

-- a claim without an instance, or with another, is the message's claim as well
SELECT seqinbox_claim('A', 'a-4');
SELECT seqinbox_store('A', 'a-4', 1001, 'WAITING') AS id \gset
SELECT seqinbox_fail_and_release(:id);
SELECT seqinbox_claim('A', 'a-4', 1001);

-- what an operator planned stays planned
UPDATE sequenced_message SET pending_action = 'CONSUME' WHERE id = 1;
SELECT seqinbox_fail_and_release(1);
SELECT pending_action FROM sequenced_message WHERE id = 1;

-- with retry_after the message comes again by itself
CREATE FUNCTION retry(wanted interval, due_at timestamptz, OUT released boolean, OUT retry_in text, OUT due text)
LANGUAGE plpgsql AS $$
DECLARE
    before timestamptz := clock_timestamp();
    after timestamptz;
    retry_at timestamptz;
BEGIN
    PERFORM seqinbox_claim('A', 'a-1', 1001);
    UPDATE sequence_instance SET release_due_at = due_at WHERE id = 1001;
    released := seqinbox_fail_and_release(1, 'error', wanted);
    SELECT m.retry_at INTO retry_at FROM sequenced_message m WHERE id = 1;
    SELECT release_due_at INTO after FROM sequence_instance WHERE id = 1001;
    retry_in := CASE WHEN retry_at IS NULL THEN 'never'
                     WHEN retry_at BETWEEN before + wanted AND clock_timestamp() + wanted THEN wanted::text
                     ELSE retry_at::text END;
    due := CASE WHEN after IS NOT DISTINCT FROM due_at THEN 'as before'
                WHEN after = retry_at THEN 'at the retry' ELSE after::text END;
END
$$;
SELECT w AS retry_after, coalesce(d::text, 'not set') AS due_before, r.*
  FROM unnest('{1 hour,0,NULL,2 months -1 day,1 microsecond}'::interval[]) WITH ORDINALITY AS w (w, i),
       unnest('{NULL,-infinity,infinity}'::timestamptz[]) WITH ORDINALITY AS d (d, j),
       LATERAL retry(w, d) AS r
 ORDER BY i, j;

-- which needs a payload to hand out; nothing is changed without
SELECT seqinbox_claim('A', 'empty', 1001), seqinbox_claim('A', 'nothing', 1001);
SELECT seqinbox_store('A', 'empty', 1001, 'WAITING', NULL) AS empty,
       seqinbox_store('A', 'nothing', 1001, 'FAILED') AS nothing \gset
SELECT seqinbox_fail_and_release(:empty, NULL, '1 hour');
UPDATE sequence_instance SET release_due_at = NULL;
UPDATE sequenced_message SET id = 5000 WHERE id = :nothing;
SELECT seqinbox_fail_and_release(5000, 'error', '1 hour');
\echo :SQLSTATE
SELECT state, attempts, last_error, retry_at FROM sequenced_message WHERE id = 5000;
SELECT release_due_at FROM sequence_instance WHERE id = 1001;
SELECT seqinbox_claim('A', 'nothing', 1001);

-- a processed message cannot fail any more, and keeps its claim
SELECT seqinbox_claim('A', 'done', 1001);
SELECT seqinbox_store('A', 'done', 1001, 'PROCESSED') AS id \gset
UPDATE sequenced_message SET id = 6000 WHERE id = :id;
SELECT seqinbox_fail_and_release(6000, 'error');
\echo :SQLSTATE
SELECT seqinbox_fail_and_release(6000, 'error', '1 hour');
\echo :SQLSTATE
SELECT state, attempts, last_error FROM sequenced_message WHERE id = 6000;
SELECT seqinbox_claim('A', 'done', 1001);

-- what else may be wrong
SELECT seqinbox_fail_and_release(999999);
\echo :SQLSTATE
SELECT seqinbox_fail_and_release(NULL);
\echo :SQLSTATE
SELECT seqinbox_fail_and_release(1, 'error', '-1 second');
\echo :SQLSTATE
SELECT seqinbox_fail_and_release(1, 'error', '1 day -25 hours');
\echo :SQLSTATE
SELECT seqinbox_fail_and_release(1, 'error', '300000 years');
\echo :SQLSTATE
BEGIN READ ONLY;
SELECT seqinbox_fail_and_release(1);
\echo :SQLSTATE
ROLLBACK;

-- an error of any length
SELECT seqinbox_fail_and_release(1, repeat('error ', 100000));
SELECT length(last_error) FROM sequenced_message WHERE id = 1;

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA fail_and_release CASCADE;
