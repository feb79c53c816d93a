-- seqinbox_housekeeping: works in batches, each a transaction; makes windows,
-- purges dead letters; what it takes as arguments.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('housekeeping_run');
SELECT seqinbox_create_inbox('housekeeping_other');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = housekeeping_run;
SET timezone = 'UTC';
SELECT seqinbox_declare('{"sequences": [
    {"name": "Orders", "retentionPeriod": "10 days", "messages": [
        {"type": "A"}, {"type": "B", "releaseCondition": {"predecessor": "A"}}]}]}');

-- lets time pass for one instance, and for the claims that it has now
CREATE FUNCTION let_pass(context text, duration interval) RETURNS void LANGUAGE sql AS $$
    UPDATE sequential_inbox_idempotence SET created_at = created_at - duration
     WHERE sequence_instance_id IN (SELECT id FROM sequence_instance WHERE context_id = context);
    UPDATE sequence_instance SET created_at = created_at - duration, retain_until = retain_until - duration,
           remove_after = remove_after - duration
     WHERE context_id = context;
$$;
CREATE VIEW instance AS
SELECT i.context_id, i.state, i.closed_at IS NOT NULL AS closed, i.remove_after - i.retain_until AS delay,
       (SELECT count(*) FROM sequenced_message m WHERE m.sequence_instance_id = i.id) AS messages,
       (SELECT count(*) FROM sequential_inbox_idempotence c WHERE c.sequence_instance_id = i.id) AS claims
  FROM sequence_instance i
 WHERE i.name <> 'seqinbox.idempotence'
 ORDER BY i.context_id;
CREATE VIEW letter AS
SELECT context_id, message_type, idempotence_id, state, attempts, last_error, reason, payload_buffered,
       convert_from(message_value, 'UTF8') AS value
  FROM dead_letter ORDER BY id;

-- batches: all the same when a turn takes one instance, and a young claim in
-- the first keeps nobody else
SELECT n, seqinbox_record_failure('B', 'b-' || n, 'many-' || n, 'error', 'v') > 0 AS recorded
  FROM generate_series(1, 5) AS n;
SELECT let_pass(context_id, '10 days') FROM instance;
UPDATE sequence_instance SET retain_until = retain_until - interval '1 minute' WHERE context_id = 'many-3';
SELECT seqinbox_claim('B', 'young', id) FROM sequence_instance WHERE context_id = 'many-3';
CALL seqinbox_housekeeping('0', 1);
SELECT * FROM instance;
SELECT * FROM letter;
CALL seqinbox_housekeeping('0', 1);
DELETE FROM sequential_inbox_idempotence;
CALL seqinbox_housekeeping('0', 1);
SELECT * FROM instance;
DELETE FROM dead_letter;
-- several of the same retain_until, more than a batch
INSERT INTO sequence_instance (name, context_id, state, created_at, retain_until)
SELECT 'Orders', 'same-' || n, CASE n % 2 WHEN 0 THEN 'OPEN' ELSE 'CLOSED' END, '2000-01-01', '2000-01-02'
  FROM generate_series(1, 25) AS n;
CALL seqinbox_housekeeping('0', 4);
SELECT * FROM instance;
INSERT INTO sequence_instance (name, context_id, state, created_at, retain_until)
SELECT 'Orders', 'oldest-' || n, 'CLOSED', '-infinity', '-infinity' FROM generate_series(1, 3) AS n;
CALL seqinbox_housekeeping(batch_size => 100000);
SELECT * FROM instance;

-- claims in numbers greater than one turn removes
INSERT INTO sequence_instance (name, context_id, state, created_at, retain_until)
SELECT 'Orders', 'claims-' || n, 'CLOSED', '2000-01-01', '2000-01-02' FROM generate_series(1, 3) AS n;
INSERT INTO sequential_inbox_idempotence
SELECT 'A', context_id || '/' || n, id, '2000-01-01'
  FROM sequence_instance, generate_series(1, 20 + right(context_id, 1)::int - 2) AS n
 WHERE context_id ~ 'claims';
SELECT context_id, claims FROM instance;
CALL seqinbox_housekeeping(batch_size => 1);
SELECT * FROM instance;
SELECT count(*) AS claims FROM sequential_inbox_idempotence;

-- no time: nothing of this is done
INSERT INTO sequence_instance (name, context_id, state, created_at, retain_until)
VALUES ('Orders', 'no time', 'CLOSED', '2000-01-01', '2000-01-02');
CALL seqinbox_housekeeping(max_duration => '0');
SELECT * FROM instance;
CALL seqinbox_housekeeping(max_duration => '1 hour');
SELECT * FROM instance;

-- sequences that are not declared, or no longer: without a message that waits
-- the instance is complete, otherwise its messages become dead letters
SELECT seqinbox_open_instance('Undeclared', 'nothing', '10 days') > 0 AS opened;
SELECT seqinbox_open_instance('Undeclared', 'processed', '10 days') AS processed \gset
SELECT seqinbox_open_instance('Undeclared', 'waiting', '10 days') AS waiting \gset
SELECT seqinbox_open_instance('Undeclared', 'failed', '10 days') AS failed \gset
SELECT seqinbox_store('U', 'u-1', :processed, 'PROCESSED') > 0 AS stored,
       seqinbox_store('U', 'u-2', :waiting, 'WAITING', 'v') > 0 AS stored,
       seqinbox_store('U', 'u-3', :failed, 'FAILED', 'v', error => 'error') > 0 AS stored;
SELECT let_pass(context_id, '10 days') FROM instance;
CALL seqinbox_housekeeping();
SELECT * FROM instance;
SELECT * FROM letter;
SELECT let_pass(context_id, '1 day') FROM instance;
CALL seqinbox_housekeeping();
SELECT * FROM instance;
SELECT * FROM letter;
DELETE FROM dead_letter;

-- claims without sequencing: the windows of three days are made ahead; a run
-- draws no IDs for those that are there
CREATE VIEW windows AS
SELECT left(context_id, 10)::date - (now() AT TIME ZONE 'UTC')::date AS day, count(*), state
  FROM sequence_instance WHERE name = 'seqinbox.idempotence' GROUP BY day, state ORDER BY day;
CALL seqinbox_housekeeping();
SELECT * FROM windows;
SELECT last_value AS last_id FROM sequence_instance_sequence \gset
CALL seqinbox_housekeeping();
SELECT last_value - :last_id AS drawn FROM sequence_instance_sequence;
DELETE FROM sequence_instance
 WHERE name = 'seqinbox.idempotence' AND left(context_id, 10)::date > (now() AT TIME ZONE 'UTC')::date;
DELETE FROM sequence_instance WHERE name = 'seqinbox.idempotence' AND context_id ~ '/03$';
SELECT * FROM windows;
CALL seqinbox_housekeeping();
SELECT * FROM windows;
SELECT last_value - :last_id AS drawn FROM sequence_instance_sequence;
-- old ones go, each when its last claim is old enough
SELECT seqinbox_claim('W', 'w-1'), seqinbox_claim('W', 'w-2');
UPDATE sequence_instance SET context_id = '2000-01-01' || substr(context_id, 11),
       created_at = created_at - interval '9 days', retain_until = retain_until - interval '9 days'
 WHERE name = 'seqinbox.idempotence' AND left(context_id, 10)::date = (now() AT TIME ZONE 'UTC')::date;
CALL seqinbox_housekeeping(removal_delay => '100 years');
SELECT * FROM windows WHERE day >= 0;
SELECT count(*) AS old FROM sequence_instance WHERE name = 'seqinbox.idempotence' AND context_id ~ '^2000';
SELECT seqinbox_claim('W', 'w-1');
UPDATE sequential_inbox_idempotence SET created_at = created_at - interval '9 days';
CALL seqinbox_housekeeping();
SELECT count(*) AS old FROM sequence_instance WHERE name = 'seqinbox.idempotence' AND context_id ~ '^2000';
SELECT seqinbox_claim('W', 'w-1');

-- dead letters are kept for ever, or as long as one asks
INSERT INTO sequence_instance (name, context_id, state, created_at, retain_until)
VALUES ('Orders', 'purge', 'OPEN', '2000-01-01', '2000-01-02');
INSERT INTO sequenced_message (message_type, cluster_name, topic, sequenced_message_id, idempotence_id, state,
                               created_at, sequence_instance_id)
SELECT 'A', '', '', gen_random_uuid(), 'a-' || n, 'FAILED', '2000-01-01', id
  FROM sequence_instance, generate_series(1, 7) AS n WHERE context_id = 'purge';
CALL seqinbox_housekeeping();
UPDATE dead_letter SET removed_at = now() - interval '20 days' + interval '10 minutes' WHERE idempotence_id >= 'a-6';
UPDATE dead_letter SET removed_at = now() - interval '20 days' WHERE idempotence_id <= 'a-5';
CALL seqinbox_housekeeping();
CALL seqinbox_housekeeping(keep_dead_letters => '21 days');
CALL seqinbox_housekeeping(batch_size => 2, keep_dead_letters => '20 days');
SELECT idempotence_id FROM letter;
CALL seqinbox_housekeeping(keep_dead_letters => '0');
SELECT idempotence_id FROM letter;

-- inside of a transaction block: an error, and nothing done
INSERT INTO sequence_instance (name, context_id, state, created_at, retain_until)
VALUES ('Orders', 'in a block', 'CLOSED', '2000-01-01', '2000-01-02');
BEGIN;
CALL seqinbox_housekeeping();
\echo :SQLSTATE
COMMIT;
SELECT * FROM instance;
CREATE FUNCTION call_housekeeping() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
BEGIN
    CALL seqinbox_housekeeping('1 day', 1000, '1 hour', NULL, n, n, n, n, n);
END $$;
SELECT call_housekeeping();
\echo :SQLSTATE
SELECT * FROM instance;
DROP FUNCTION call_housekeeping;
-- ... but a block that may commit will do
DO $$
DECLARE
    closed bigint; marked bigint; removed bigint; buried bigint; purged bigint;
BEGIN
    CALL seqinbox_housekeeping('1 day', 1000, '1 hour', NULL, closed, marked, removed, buried, purged);
    RAISE NOTICE 'removed: %', removed;
END $$;
SELECT * FROM instance;

-- a read-only transaction
SET default_transaction_read_only = on;
CALL seqinbox_housekeeping();
\echo :SQLSTATE
RESET default_transaction_read_only;

-- what it does is READ COMMITTED, whatever the default is
CREATE TABLE seen (level text);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO seen VALUES (current_setting('transaction_isolation'));
    RETURN OLD;
END $$;
CREATE TRIGGER see BEFORE DELETE ON sequence_instance FOR EACH ROW EXECUTE FUNCTION see();
INSERT INTO sequence_instance (name, context_id, state, created_at, retain_until)
VALUES ('Orders', 'levels-1', 'CLOSED', '2000-01-01', '2000-01-02'),
       ('Orders', 'levels-2', 'CLOSED', '2000-01-01', '2000-01-02');
SET default_transaction_isolation = 'repeatable read';
CALL seqinbox_housekeeping(batch_size => 1);
SET default_transaction_isolation = 'serializable';
CALL seqinbox_housekeeping();
RESET default_transaction_isolation;
SELECT * FROM seen;
DROP TABLE seen;
DROP FUNCTION see CASCADE;

-- what it did is logged; when there was nothing to do, nothing is
SET client_min_messages = log;
INSERT INTO sequence_instance (name, context_id, state, created_at, retain_until)
VALUES ('Orders', 'logged', 'CLOSED', '2000-01-01', '2000-01-02');
CALL seqinbox_housekeeping();
CALL seqinbox_housekeeping();
RESET client_min_messages;

-- only the inbox in use is cleaned
INSERT INTO housekeeping_other.sequence_instance (name, context_id, state, created_at, retain_until)
VALUES ('Orders', 'other', 'CLOSED', '2000-01-01', '2000-01-02');
CALL seqinbox_housekeeping();
SET search_path = housekeeping_other;
CALL seqinbox_housekeeping();
SET search_path = '';
CALL seqinbox_housekeeping();
\echo :SQLSTATE
SET search_path = housekeeping_run;

-- arguments
CALL seqinbox_housekeeping(NULL);
\echo :SQLSTATE
CALL seqinbox_housekeeping('-1 second');
\echo :SQLSTATE
CALL seqinbox_housekeeping(batch_size => NULL);
\echo :SQLSTATE
CALL seqinbox_housekeeping(batch_size => 0);
\echo :SQLSTATE
CALL seqinbox_housekeeping(batch_size => -1);
\echo :SQLSTATE
CALL seqinbox_housekeeping(batch_size => 100001);
\echo :SQLSTATE
CALL seqinbox_housekeeping(max_duration => NULL);
\echo :SQLSTATE
CALL seqinbox_housekeeping(max_duration => '-1 second');
\echo :SQLSTATE
CALL seqinbox_housekeeping(keep_dead_letters => '-1 day');
\echo :SQLSTATE

SET client_min_messages = warning;
DROP SCHEMA housekeeping_run CASCADE;
DROP SCHEMA housekeeping_other CASCADE;
