-- An inbox that changes while a session has used it: no call works with what
-- it knew before.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('inbox_change');
\set VERBOSITY sqlstate
SET search_path = inbox_change;

-- use each kind of statement once, so that there is something to remember
CREATE FUNCTION public.use_all(id text, OUT claimed boolean, OUT tried text, OUT stored boolean,
                               OUT failed boolean, OUT state text) LANGUAGE plpgsql AS $$
DECLARE
    instance bigint := seqinbox_open_instance('S', 'c', '1 day');
    message bigint;
BEGIN
    claimed := seqinbox_claim('A', id, instance);
    tried := seqinbox_try_claim('A', id || ' tried');
    message := seqinbox_store('A', id, instance, 'WAITING', 'value', 'key', '{h}', '{v}');
    stored := message > 0;
    failed := seqinbox_fail_and_release(message);
    state := l.state FROM seqinbox_lookup('A', id) AS l;
END
$$;
SELECT * FROM public.use_all('use');

-- the schema is renamed, then another inbox gets its old name
ALTER SCHEMA inbox_change RENAME TO inbox_renamed;
SELECT seqinbox_claim('A', 'rename');
SET search_path = inbox_renamed;
SELECT * FROM public.use_all('rename');
SELECT seqinbox_create_inbox('inbox_change');
SET search_path = inbox_change;
SELECT * FROM public.use_all('rename');
SELECT seqinbox_claim('A', 'only new');
SET search_path = inbox_renamed;
SELECT seqinbox_claim('A', 'only old');
SELECT idempotence_id FROM inbox_renamed.sequential_inbox_idempotence ORDER BY 1;
SELECT idempotence_id FROM inbox_change.sequential_inbox_idempotence ORDER BY 1;

-- two schemas swap their names, in one transaction
BEGIN;
ALTER SCHEMA inbox_change RENAME TO inbox_swap;
ALTER SCHEMA inbox_renamed RENAME TO inbox_change;
ALTER SCHEMA inbox_swap RENAME TO inbox_renamed;
SELECT seqinbox_claim('A', 'only new'), seqinbox_claim('A', 'only old');
SET LOCAL search_path = inbox_change;
SELECT seqinbox_claim('A', 'only new'), seqinbox_claim('A', 'only old');
ROLLBACK;
SELECT seqinbox_claim('A', 'only new'), seqinbox_claim('A', 'only old');

-- dropped, and made again
DROP SCHEMA inbox_renamed CASCADE;
SELECT seqinbox_claim('A', 'dropped');
SELECT seqinbox_create_inbox('inbox_renamed');
SELECT * FROM public.use_all('rename');
DROP SCHEMA inbox_renamed CASCADE;

-- made, used and undone in one transaction, then made again
SET search_path = inbox_undone;
BEGIN;
SELECT seqinbox_create_inbox('inbox_undone');
SELECT * FROM public.use_all('undone');
ROLLBACK;
SELECT seqinbox_claim('A', 'undone');
BEGIN;
SAVEPOINT s;
SELECT seqinbox_create_inbox('inbox_undone');
SELECT * FROM public.use_all('undone');
ROLLBACK TO s;
SELECT seqinbox_create_inbox('inbox_undone');
SELECT * FROM public.use_all('undone');
COMMIT;
DROP SCHEMA inbox_undone CASCADE;

-- columns, indexes and types change
SET search_path = inbox_change;
SELECT * FROM public.use_all('column');
ALTER TABLE sequential_inbox_idempotence ADD COLUMN note text NOT NULL DEFAULT 'none';
ALTER TABLE sequenced_message ADD COLUMN other text, ADD COLUMN note text;
ALTER TABLE sequenced_message DROP COLUMN other;
ALTER TABLE sequence_instance ALTER COLUMN context_id TYPE varchar(100);
ALTER TABLE sequenced_message ALTER COLUMN idempotence_id TYPE varchar(3000);
DROP INDEX sequenced_message_idempotence_id;
SELECT * FROM public.use_all('column');
SELECT * FROM public.use_all('column 2');
ALTER TABLE sequential_inbox_idempotence DROP COLUMN note;
SELECT * FROM public.use_all('column 3');

-- a column that is needed goes, and comes back
ALTER TABLE sequenced_message RENAME COLUMN attempts TO tries;
SELECT seqinbox_lookup('A', 'column');
SELECT seqinbox_lookup('A', 'column');
SELECT seqinbox_create_inbox();
SELECT attempts FROM seqinbox_lookup('A', 'column');

-- a table is renamed: an error, as often as one tries; renamed back: no error
ALTER TABLE sequenced_message RENAME TO away;
SELECT seqinbox_lookup('A', 'column');
SELECT seqinbox_lookup('A', 'column');
SELECT seqinbox_claim('A', 'away');
ALTER TABLE away RENAME TO sequenced_message;
SELECT state FROM seqinbox_lookup('A', 'column');
SELECT * FROM public.use_all('away');
ALTER TABLE sequential_inbox_idempotence RENAME TO away;
SELECT seqinbox_claim('A', 'away');
ALTER TABLE away RENAME TO sequential_inbox_idempotence;
SELECT seqinbox_claim('A', 'away'), seqinbox_claim('A', 'back');

-- the same where the error comes before there is anything to remember
\c -
SET search_path = inbox_change;
SET client_min_messages = warning;
ALTER TABLE sequence_instance RENAME TO away;
SELECT seqinbox_try_claim('A', 'first');
SELECT seqinbox_claim('A', 'first');
ALTER TABLE away RENAME TO sequence_instance;
SELECT * FROM public.use_all('first');

-- the error is caught, and the session goes on in the same transaction
BEGIN;
ALTER TABLE sequence_instance RENAME TO away;
DO $$
BEGIN
    PERFORM seqinbox_claim('A', 'caught');
    RAISE 'no error';
EXCEPTION WHEN undefined_table THEN
    NULL;
END
$$;
ALTER TABLE away RENAME TO sequence_instance;
SELECT * FROM public.use_all('caught');
COMMIT;

-- the claim table moves to another schema, which so becomes the inbox
CREATE SCHEMA inbox_moved;
ALTER TABLE sequential_inbox_idempotence SET SCHEMA inbox_moved;
SELECT seqinbox_claim('A', 'moved');
SET search_path = inbox_change, inbox_moved;
SELECT seqinbox_claim('A', 'moved');
ALTER TABLE inbox_moved.sequential_inbox_idempotence SET SCHEMA inbox_change;
SELECT * FROM public.use_all('moved');

-- the session forgets all it has
DISCARD ALL;
SELECT seqinbox_claim('A', 'discarded');
SET search_path = inbox_change;
SET client_min_messages = warning;
SELECT * FROM public.use_all('discarded');
DISCARD PLANS;
SELECT * FROM public.use_all('discarded too');

-- the extension is dropped and created again: the inbox has lost nothing
BEGIN;
SELECT seqinbox_claim('A', 'in between');
DROP EXTENSION seqinbox;
SELECT seqinbox_claim('A', 'in between');
ROLLBACK;
SELECT seqinbox_claim('A', 'kept');
DROP EXTENSION seqinbox;
SELECT idempotence_id FROM sequential_inbox_idempotence WHERE idempotence_id = 'kept';
CREATE EXTENSION seqinbox;
SELECT seqinbox_claim('A', 'kept');
SELECT seqinbox_create_inbox();
SELECT * FROM public.use_all('kept');
SELECT * FROM public.use_all('created again');

RESET search_path;
DROP FUNCTION public.use_all;
DROP SCHEMA inbox_change, inbox_moved CASCADE;
