-- A message that failed keeps its successors waiting; a resend, a retry by
-- time and a retry by hand bring it back.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('retry');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = retry;
SELECT seqinbox_declare('{"sequences": [
    {"name": "S", "retentionPeriod": "1 day", "messages": [
        {"type": "A"},
        {"type": "B", "releaseCondition": {"predecessor": "A"}},
        {"type": "C", "releaseCondition": {"predecessor": "B"}}]}]}');
CREATE FUNCTION receive(type text, message text, context text) RETURNS text LANGUAGE sql AS $$
SELECT concat_ws(' ', outcome, attempts, CASE WHEN release_due THEN 'due' END)
  FROM seqinbox_receive(type, message, context, convert_to('value of ' || message, 'UTF8'))
$$;
CREATE FUNCTION instance(context text) RETURNS bigint LANGUAGE sql AS $$
SELECT id FROM sequence_instance WHERE name = 'S' AND context_id = context
$$;
CREATE FUNCTION next(context text) RETURNS text LANGUAGE sql AS $$
SELECT concat_ws(' ', idempotence_id, attempts) FROM seqinbox_next(instance(context))
$$;
CREATE FUNCTION id(message text) RETURNS bigint LANGUAGE sql AS $$
SELECT id FROM sequenced_message WHERE idempotence_id = message
$$;
CREATE VIEW record AS
SELECT context_id, message_type AS type, m.idempotence_id AS message, m.state, attempts, last_error AS error,
       CASE WHEN retry_at > clock_timestamp() THEN 'later' WHEN retry_at IS NOT NULL THEN 'now' END AS retry,
       c.idempotence_id IS NOT NULL AS claimed,
       EXISTS (SELECT FROM buffered_message b WHERE b.sequenced_message_id = m.id) AS buffered,
       CASE WHEN release_due_at > clock_timestamp() THEN 'later' WHEN release_due_at IS NOT NULL THEN 'now' END AS due
  FROM sequence_instance i
  JOIN sequenced_message m ON m.sequence_instance_id = i.id
  LEFT JOIN sequential_inbox_idempotence c USING (message_type, idempotence_id)
 ORDER BY m.id;

-- A fails on its first delivery: its transaction is rolled back, and the
-- failure recorded
BEGIN;
SELECT receive('A', 'a-1', 'first');
ROLLBACK;
SELECT seqinbox_record_failure('A', 'a-1', 'first', 'no stock') > 0 AS recorded;
-- its successors wait
SELECT receive('B', 'b-1', 'first'), receive('C', 'c-1', 'first');
SELECT seqinbox_is_releasable('B', instance('first')), next('first');
SELECT * FROM record;
-- the resend succeeds and releases them
SELECT receive('A', 'a-1', 'first');
SELECT next('first');
SELECT next('first');
SELECT next('first');
SELECT * FROM record;

-- B fails when next has handed it out: the transaction is rolled back, so it
-- waits again; then it fails, and its claim is free
SELECT receive('C', 'c-2', 'second'), receive('B', 'b-2', 'second'), receive('A', 'a-2', 'second');
BEGIN;
SELECT next('second');
SELECT * FROM record WHERE context_id = 'second';
ROLLBACK;
SELECT seqinbox_fail_and_release(id('b-2'), 'error 1');
SELECT next('second');
SELECT * FROM record WHERE context_id = 'second';
-- the resend fails too; again and again its attempts count
BEGIN;
SELECT receive('B', 'b-2', 'second');
ROLLBACK;
SELECT seqinbox_record_failure('B', 'b-2', 'second', 'error 2') = id('b-2') AS same;
BEGIN;
SELECT receive('B', 'b-2', 'second');
ROLLBACK;
SELECT seqinbox_record_failure('B', 'b-2', 'second', 'error 3') = id('b-2') AS same;
SELECT receive('B', 'b-2', 'second');
SELECT next('second');
SELECT * FROM record WHERE context_id = 'second';

-- a retry by hand: next offers the buffered message again, once
SELECT receive('B', 'b-3', 'hand'), receive('C', 'c-3', 'hand'), receive('A', 'a-3', 'hand');
BEGIN;
SELECT next('hand');
ROLLBACK;
SELECT seqinbox_fail_and_release(id('b-3'), 'error');
SELECT next('hand');
SELECT seqinbox_retry(id('b-3'));
SELECT * FROM record WHERE context_id = 'hand';
-- whether it is looked for, or found
SELECT idempotence_id, convert_from(message_value, 'UTF8') AS value, attempts FROM seqinbox_next();
SELECT * FROM record WHERE context_id = 'hand';
-- it has its claim back: a resend is a duplicate
SELECT receive('B', 'b-3', 'hand');
SELECT next('hand');
SELECT next('hand');
-- a handler that fails again, and again a retry
SELECT receive('B', 'b-4', 'again'), receive('A', 'a-4', 'again');
BEGIN;
SELECT next('again');
ROLLBACK;
SELECT seqinbox_fail_and_release(id('b-4'), 'error 1');
SELECT seqinbox_retry(id('b-4'));
BEGIN;
SELECT next('again');
ROLLBACK;
SELECT seqinbox_fail_and_release(id('b-4'), 'error 2');
-- it is no longer on offer, until the next retry
SELECT next('again');
SELECT seqinbox_retry(id('b-4')), seqinbox_retry(id('b-4')) AS twice;
SELECT next('again');
SELECT next('again');
SELECT * FROM record WHERE context_id = 'again';

-- retry_after: by the inbox itself, when the time has come
SELECT receive('C', 'c-5', 'time'), receive('B', 'b-5', 'time'), receive('A', 'a-5', 'time');
BEGIN;
SELECT next('time');
ROLLBACK;
SELECT seqinbox_fail_and_release(id('b-5'), 'error', '1 hour');
SELECT next('time');
SELECT * FROM record WHERE context_id = 'time';
SELECT release_due_at = retry_at AS due_at_retry
  FROM sequence_instance i JOIN sequenced_message m ON m.sequence_instance_id = i.id WHERE m.idempotence_id = 'b-5';
SELECT count(*) FROM seqinbox_next();
-- an hour later
UPDATE sequenced_message SET retry_at = retry_at - interval '1 hour' WHERE idempotence_id = 'b-5';
UPDATE sequence_instance SET release_due_at = release_due_at - interval '1 hour' WHERE context_id = 'time';
SELECT idempotence_id, attempts FROM seqinbox_next();
SELECT idempotence_id, attempts FROM seqinbox_next();
SELECT * FROM record WHERE context_id = 'time';
-- at once
SELECT receive('B', 'b-6', 'at once'), receive('A', 'a-6', 'at once');
BEGIN;
SELECT next('at once');
ROLLBACK;
SELECT seqinbox_fail_and_release(id('b-6'), 'error', '0');
SELECT next('at once');
-- of a first delivery
SELECT seqinbox_record_failure('A', 'a-7', 'first delivery', 'error', 'the payload', retry_after => '0') > 0 AS recorded;
SELECT receive('B', 'b-7', 'first delivery');
SELECT idempotence_id, convert_from(message_value, 'UTF8') AS value, attempts FROM seqinbox_next(instance('first delivery'));
SELECT next('first delivery');

-- a resend overtakes the retry, which then is over
SELECT seqinbox_record_failure('A', 'a-8', 'overtaken', 'error', 'value', retry_after => '1 hour') > 0 AS recorded;
SELECT receive('A', 'a-8', 'overtaken');
SELECT * FROM record WHERE context_id = 'overtaken';
SELECT next('overtaken');
SELECT * FROM record WHERE context_id = 'overtaken';

-- a retry waits for the condition as any message does
SELECT seqinbox_record_failure('B', 'b-9', 'condition', 'error', 'value', retry_after => '0') > 0 AS recorded;
SELECT next('condition');
SELECT * FROM record WHERE context_id = 'condition';
SELECT receive('A', 'a-9', 'condition');
SELECT next('condition');

-- in the order of arrival, whether they waited or failed
SELECT receive('B', 'b-10', 'order'),
       seqinbox_record_failure('B', 'b-11', 'order', 'error', 'value', retry_after => '0') > 0 AS failed,
       receive('B', 'b-12', 'order'), receive('A', 'a-10', 'order');
SELECT next('order');
SELECT next('order');
SELECT next('order');
SELECT next('order');

-- a claim that another program left, while the record says FAILED, stands not
-- in the way
SELECT seqinbox_record_failure('A', 'a-13', 'claimed', 'error', 'value') > 0 AS recorded;
SELECT seqinbox_claim('A', 'a-13', instance('claimed'));
SELECT seqinbox_retry(id('a-13'));
SELECT next('claimed');

-- what cannot be retried: no payload, not failed, not there
SELECT seqinbox_record_failure('A', 'a-14', 'refused', 'error') > 0 AS recorded;
SELECT receive('B', 'b-14', 'refused');
SELECT receive('A', 'a-15', 'refused');
UPDATE sequenced_message SET id = 1001 WHERE idempotence_id = 'a-14';
SELECT seqinbox_retry(1001);
\echo :SQLSTATE
UPDATE sequenced_message SET id = 1003 WHERE idempotence_id = 'a-15';
SELECT seqinbox_retry(1003);
\echo :SQLSTATE
DELETE FROM buffered_message;
UPDATE sequenced_message SET id = 1002 WHERE idempotence_id = 'b-14';
SELECT seqinbox_retry(1002);
\echo :SQLSTATE
SELECT seqinbox_retry(999999);
\echo :SQLSTATE
SELECT seqinbox_retry(NULL);
\echo :SQLSTATE
SELECT message, state, retry, due FROM record WHERE context_id = 'refused';

-- a retry that another program asks for, of a message whose payload is gone, is
-- given up, and keeps nobody waiting
SELECT seqinbox_record_failure('A', 'a-16', 'no payload', 'error') > 0 AS recorded;
SELECT seqinbox_record_failure('A', 'a-17', 'no payload', 'error', 'value', retry_after => '0') > 0 AS recorded;
UPDATE sequenced_message SET retry_at = now() WHERE idempotence_id = 'a-16';
SELECT message, state, retry, claimed, buffered FROM record WHERE context_id = 'no payload';
SELECT next('no payload');
SELECT next('no payload');
SELECT message, state, retry, claimed, buffered FROM record WHERE context_id = 'no payload';

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA retry CASCADE;
