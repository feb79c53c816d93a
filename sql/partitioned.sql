-- A claim table that is partitioned. It has no index of its own in which a claim
-- could be looked at; statements decide then, and what may not wait is tried.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
\set SHOW_CONTEXT never
SELECT seqinbox_create_inbox('partitioned');
SET search_path = partitioned;
DROP TABLE sequential_inbox_idempotence;
CREATE TABLE sequential_inbox_idempotence (
    message_type text COLLATE "C" NOT NULL,
    idempotence_id text COLLATE "C" NOT NULL,
    sequence_instance_id bigint NOT NULL REFERENCES sequence_instance ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    CONSTRAINT sequential_inbox_idempotence_pkey PRIMARY KEY (message_type, idempotence_id)
) PARTITION BY HASH (idempotence_id);
CREATE TABLE claims_0 PARTITION OF sequential_inbox_idempotence FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE claims_1 PARTITION OF sequential_inbox_idempotence FOR VALUES WITH (MODULUS 2, REMAINDER 1);

-- it is adopted as it is, however small: an index that is missing is told
SET client_min_messages = notice;
SELECT seqinbox_create_inbox('partitioned');
CREATE INDEX sequential_inbox_idempotence_sequence_instance_id ON sequential_inbox_idempotence (sequence_instance_id);
SELECT seqinbox_create_inbox('partitioned');

SELECT seqinbox_declare('{"sequences": [{"name": "S", "retentionPeriod": "1 day", "messages": [
    {"type": "A"}, {"type": "B", "releaseCondition": {"predecessor": "A"}}]}]}');
SELECT seqinbox_open_instance('S', 'claims') AS instance \gset

-- claims
SELECT n, seqinbox_claim('A', 'a-' || n % 3, :instance) FROM generate_series(1, 6) AS n;
SELECT n, seqinbox_try_claim('A', 'a-' || n, :instance) FROM generate_series(1, 5) AS n;
SELECT seqinbox_claim('A', 'alone'), seqinbox_claim('A', 'alone') AS again,
       seqinbox_try_claim('A', 'alone') AS tried, seqinbox_try_claim('B', 'alone') AS free;
SELECT tableoid::regclass AS partition, count(*) FROM sequential_inbox_idempotence GROUP BY 1 ORDER BY 1;

-- one that waits for another lock gives up at once
BEGIN;
CREATE FUNCTION wait_for_nothing() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE lock_not_available;
END
$$;
CREATE TRIGGER wait_for_nothing BEFORE INSERT ON sequential_inbox_idempotence
   FOR EACH ROW EXECUTE FUNCTION wait_for_nothing();
SELECT seqinbox_try_claim('A', 'locked', :instance);
SELECT count(*) FROM sequential_inbox_idempotence WHERE idempotence_id = 'locked';
ROLLBACK;
SELECT seqinbox_try_claim('A', 'locked', :instance);

-- deliveries, alone and in a batch
SELECT outcome FROM seqinbox_receive('B', 'b', 'deliveries', 'value');
SELECT outcome FROM seqinbox_receive('B', 'b', 'deliveries', 'value');
SELECT ordinal, outcome
  FROM seqinbox_receive_batch('{A,B,A,B}', '{a,b,a,b-2}', '{deliveries,deliveries,deliveries,others}', '{1,2,3,4}');
SELECT message_type, idempotence_id, convert_from(message_value, 'UTF8') AS value FROM seqinbox_next();
SELECT message_type, idempotence_id FROM seqinbox_next();

-- a claim is freed, and goes with its instance
SELECT seqinbox_store('A', 'a-1', :instance, 'FAILED') AS id \gset
SELECT seqinbox_fail_and_release(:id), seqinbox_claim('A', 'a-1', :instance);
DELETE FROM sequenced_message WHERE sequence_instance_id = :instance;
DELETE FROM sequence_instance WHERE id = :instance;
SELECT message_type, idempotence_id FROM sequential_inbox_idempotence ORDER BY 1, 2;

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA partitioned CASCADE;
