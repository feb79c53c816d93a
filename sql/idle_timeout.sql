-- seqinbox.idle_timeout: a transaction that claims may be idle for so long,
-- and the limit ends with it.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('idle_timeout');
RESET client_min_messages;
SET search_path = idle_timeout;
SELECT boot_val, unit FROM pg_settings WHERE name = 'seqinbox.idle_timeout';
SET seqinbox.idle_timeout = '10min';
SET idle_in_transaction_session_timeout = 0;

-- before, in and after the transaction
SHOW idle_in_transaction_session_timeout;
BEGIN;
SELECT seqinbox_claim('A', 'a-1');
SHOW idle_in_transaction_session_timeout;
COMMIT;
SHOW idle_in_transaction_session_timeout;
BEGIN;
SELECT seqinbox_claim('A', 'a-2');
SHOW idle_in_transaction_session_timeout;
ROLLBACK;
SHOW idle_in_transaction_session_timeout;
SELECT seqinbox_claim('A', 'a-3');
SHOW idle_in_transaction_session_timeout;

-- try_claim claims as well
BEGIN;
SELECT seqinbox_try_claim('A', 'a-4');
SHOW idle_in_transaction_session_timeout;
COMMIT;
SHOW idle_in_transaction_session_timeout;

-- a claim that is undone with its savepoint leaves no limit behind
BEGIN;
SAVEPOINT s;
SELECT seqinbox_claim('A', 'a-5');
SHOW idle_in_transaction_session_timeout;
ROLLBACK TO s;
SHOW idle_in_transaction_session_timeout;
SAVEPOINT s;
SELECT seqinbox_claim('A', 'a-5');
RELEASE s;
SHOW idle_in_transaction_session_timeout;
COMMIT;
SHOW idle_in_transaction_session_timeout;

-- the functions that claim nothing for long set none
BEGIN;
SELECT seqinbox_store('A', 'a-1', seqinbox_open_instance('S', 'c', '1 day'), 'FAILED') AS id;
SELECT id, state FROM seqinbox_lookup('A', 'a-1');
SELECT seqinbox_fail_and_release(1);
SHOW idle_in_transaction_session_timeout;
COMMIT;

-- a stricter limit of the user's stays, a laxer one does not
SET idle_in_transaction_session_timeout = '1min';
BEGIN;
SELECT seqinbox_claim('A', 'a-6');
SHOW idle_in_transaction_session_timeout;
COMMIT;
SET idle_in_transaction_session_timeout = '1h';
BEGIN;
SELECT seqinbox_claim('A', 'a-7');
SHOW idle_in_transaction_session_timeout;
COMMIT;
SHOW idle_in_transaction_session_timeout;

-- what the user sets after the claim counts
BEGIN;
SELECT seqinbox_claim('A', 'a-8');
SET LOCAL idle_in_transaction_session_timeout = '2min';
SHOW idle_in_transaction_session_timeout;
COMMIT;
SHOW idle_in_transaction_session_timeout;

-- another limit, and none
SET seqinbox.idle_timeout = '90s';
BEGIN;
SELECT seqinbox_claim('A', 'a-9');
SHOW idle_in_transaction_session_timeout;
COMMIT;
SET seqinbox.idle_timeout = 0;
BEGIN;
SELECT seqinbox_claim('A', 'a-10');
SHOW idle_in_transaction_session_timeout;
COMMIT;
SET idle_in_transaction_session_timeout = 0;
BEGIN;
SELECT seqinbox_claim('A', 'a-11');
SHOW idle_in_transaction_session_timeout;
COMMIT;

-- values that the setting refuses (how the range is shown depends on the version)
\set VERBOSITY sqlstate
SET seqinbox.idle_timeout = -1;
\echo :SQLSTATE
\set VERBOSITY default
SET seqinbox.idle_timeout = 'long';
\echo :SQLSTATE

-- set in a session that has not loaded the library yet
\c -
SET search_path = idle_timeout;
SET idle_in_transaction_session_timeout = 0;
SET seqinbox.idle_timeout = '45s';
BEGIN;
SELECT seqinbox_claim('A', 'a-12');
SHOW idle_in_transaction_session_timeout;
COMMIT;

SET client_min_messages = warning;
DROP SCHEMA idle_timeout CASCADE;
