-- seqinbox_create_inbox: creates what is missing, leaves what is there, and
-- says what it did.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
RESET client_min_messages;
\set SHOW_CONTEXT never

-- a new schema, then the same again
SELECT seqinbox_create_inbox('create_inbox');
SELECT seqinbox_create_inbox('create_inbox');

-- windows for claims without sequencing are made ahead
SELECT name, state, count(*) > 1 AS several, count(DISTINCT retain_until) AS days
  FROM create_inbox.sequence_instance GROUP BY name, state;

-- undone with the transaction
BEGIN;
SET LOCAL client_min_messages = warning;
SELECT seqinbox_create_inbox('create_inbox_undone');
ROLLBACK;
SELECT to_regnamespace('create_inbox_undone') IS NULL AS undone;

-- a schema that is there; it is the default argument where it comes first
CREATE SCHEMA create_inbox_default;
CREATE TABLE create_inbox_default.other ();
SET search_path = create_inbox_missing, create_inbox_default, create_inbox;
SELECT seqinbox_create_inbox();
SELECT current_schema(), seqinbox_claim('A', 'a-1');
SELECT count(*) FROM create_inbox_default.sequential_inbox_idempotence;

-- no default without a schema
SET search_path = create_inbox_missing;
SELECT seqinbox_create_inbox();
\echo :SQLSTATE
RESET search_path;
SELECT seqinbox_create_inbox(NULL);
\echo :SQLSTATE
SELECT seqinbox_create_inbox('');
\echo :SQLSTATE
BEGIN READ ONLY;
SELECT seqinbox_create_inbox('create_inbox');
\echo :SQLSTATE
ROLLBACK;

-- schemas that belong to the server
SELECT seqinbox_create_inbox('pg_catalog');
\echo :SQLSTATE
SELECT seqinbox_create_inbox('pg_temp');
\echo :SQLSTATE
SELECT seqinbox_create_inbox('pg_toast');
\echo :SQLSTATE
SELECT seqinbox_create_inbox('pg_inbox');
\echo :SQLSTATE

-- a name that needs quoting
SELECT seqinbox_create_inbox('In "box" it''s \ %s; --');
SELECT seqinbox_create_inbox('In "box" it''s \ %s; --');
SET search_path = "In ""box"" it's \ %s; --";
SELECT current_schema(), seqinbox_claim('A', 'a-1'), seqinbox_claim('A', 'a-1') AS again;
SELECT seqinbox_store('A', 'a-1', seqinbox_open_instance('S', 'c', '1 day'), 'WAITING', 'value',
                      'key', '{h}', '{v}') AS id;
SELECT id, state FROM seqinbox_lookup('A', 'a-1');
SELECT seqinbox_fail_and_release(1);
SELECT count(*) AS headers FROM message_header;
DROP TABLE dead_letter;
ALTER TABLE sequenced_message DROP COLUMN last_error, ALTER COLUMN id DROP DEFAULT;
DROP INDEX sequenced_message_idempotence_id;
SELECT seqinbox_create_inbox();
RESET search_path;

-- the longest name
SELECT repeat('x', 63) AS longest \gset
SET client_min_messages = warning;
SELECT seqinbox_create_inbox(:'longest');
RESET client_min_messages;
SET search_path = :"longest";
SELECT seqinbox_create_inbox();
SELECT current_schema() = :'longest' AS here, seqinbox_claim('A', 'a-1');
RESET search_path;

-- what is not the kind of relation that is needed is in the way, and stays
CREATE SCHEMA create_inbox_view;
CREATE VIEW create_inbox_view.dead_letter AS SELECT 1 AS id;
SELECT seqinbox_create_inbox('create_inbox_view');
\echo :SQLSTATE
DROP VIEW create_inbox_view.dead_letter;
CREATE MATERIALIZED VIEW create_inbox_view.sequence_instance AS SELECT 1 AS id;
SELECT seqinbox_create_inbox('create_inbox_view');
\echo :SQLSTATE
DROP MATERIALIZED VIEW create_inbox_view.sequence_instance;
CREATE TYPE create_inbox_view.message_header AS (id int);
SELECT seqinbox_create_inbox('create_inbox_view');
\echo :SQLSTATE
DROP TYPE create_inbox_view.message_header;
CREATE SEQUENCE create_inbox_view.sequential_inbox_idempotence;
SELECT seqinbox_create_inbox('create_inbox_view');
\echo :SQLSTATE
DROP SEQUENCE create_inbox_view.sequential_inbox_idempotence;
CREATE TABLE create_inbox_view.message_header_sequence ();
SELECT seqinbox_create_inbox('create_inbox_view');
\echo :SQLSTATE
SELECT relname FROM pg_class WHERE relnamespace = 'create_inbox_view'::regnamespace;

-- a column of another type: nothing is changed, not even what was missing
CREATE SCHEMA create_inbox_type;
CREATE TABLE create_inbox_type.sequence_instance (id bigint PRIMARY KEY, name text NOT NULL);
CREATE TABLE create_inbox_type.dead_letter (id bigint PRIMARY KEY, reason integer);
SELECT seqinbox_create_inbox('create_inbox_type');
\echo :SQLSTATE
ALTER TABLE create_inbox_type.dead_letter ALTER COLUMN reason TYPE text[] USING '{}';
SELECT seqinbox_create_inbox('create_inbox_type');
\echo :SQLSTATE
SELECT c.relname, string_agg(a.attname, ', ' ORDER BY a.attnum) AS columns
  FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
 WHERE c.relnamespace = 'create_inbox_type'::regnamespace
 GROUP BY c.relname ORDER BY c.relname COLLATE "C";

-- a timestamp without a time zone is no moment; an int is no id
ALTER TABLE create_inbox_type.dead_letter DROP COLUMN reason, ADD COLUMN created_at timestamp;
SELECT seqinbox_create_inbox('create_inbox_type');
\echo :SQLSTATE
DROP TABLE create_inbox_type.dead_letter;
ALTER TABLE create_inbox_type.sequence_instance ALTER COLUMN id TYPE integer;
SELECT seqinbox_create_inbox('create_inbox_type');
\echo :SQLSTATE

-- varchar serves as text, whatever its length
ALTER TABLE create_inbox_type.sequence_instance
    ALTER COLUMN id TYPE bigint, ALTER COLUMN name TYPE varchar(255);
SELECT seqinbox_create_inbox('create_inbox_type');
SELECT format_type(atttypid, atttypmod) FROM pg_attribute
 WHERE attrelid = 'create_inbox_type.sequence_instance'::regclass AND attname = 'name';
SET search_path = create_inbox_type;
SELECT seqinbox_open_instance('S', 'c', '1 day') = seqinbox_open_instance('S', 'c', '1 day') AS same;
RESET search_path;

-- missing columns, defaults, indexes and sequences are completed, also where
-- there are rows
SET search_path = create_inbox;
INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
VALUES (5000, 'S', 'c', 'OPEN', now(), now());
INSERT INTO sequenced_message (id, message_type, cluster_name, topic, sequenced_message_id,
                               idempotence_id, state, created_at, sequence_instance_id)
SELECT 7000 + n, 'A', '', '', gen_random_uuid(), 'same', 'PROCESSED', now(), 5000
  FROM generate_series(1, 2) AS n;
ALTER TABLE sequence_instance DROP COLUMN release_due_at;
ALTER TABLE sequence_instance ALTER COLUMN created_in_recording_mode DROP DEFAULT;
ALTER TABLE sequenced_message DROP COLUMN attempts, DROP COLUMN retry_at, DROP COLUMN state_changed_at;
ALTER TABLE message_header DROP CONSTRAINT message_header_pkey;
DROP SEQUENCE sequenced_message_sequence CASCADE;
DROP INDEX sequential_inbox_idempotence_sequence_instance_id, sequenced_message_unprocessed;
SELECT seqinbox_create_inbox();
SELECT seqinbox_create_inbox();
SELECT attname, atttypid::regtype, attnotnull, atthasmissing
  FROM pg_attribute
 WHERE attrelid = 'sequenced_message'::regclass
   AND attname IN ('attempts', 'retry_at', 'state_changed_at') ORDER BY attname COLLATE "C";
SELECT id, attempts, retry_at FROM sequenced_message ORDER BY id;
SELECT seqinbox_store('A', 'new', 5000, 'PROCESSED') AS id;
RESET search_path;

-- a default of another kind, an identity column and a sequence with another
-- increment stay
CREATE SCHEMA create_inbox_stay;
SET search_path = create_inbox_stay;
CREATE SEQUENCE sequenced_message_sequence INCREMENT 50;
CREATE TABLE sequence_instance (
    id bigint GENERATED BY DEFAULT AS IDENTITY (START 100) PRIMARY KEY,
    name text NOT NULL, context_id text NOT NULL,
    state text NOT NULL, created_at timestamptz NOT NULL, closed_at timestamptz,
    retain_until timestamptz NOT NULL, remove_after timestamptz, pending_action text,
    created_in_recording_mode boolean NOT NULL DEFAULT true, release_due_at timestamptz);
SELECT seqinbox_create_inbox();
SELECT nextval('sequenced_message_sequence'), nextval('sequenced_message_sequence') AS next;
SELECT a.attname, a.attidentity, pg_get_expr(d.adbin, d.adrelid) AS "default"
  FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
 WHERE a.attrelid = 'sequence_instance'::regclass
   AND a.attname IN ('id', 'created_in_recording_mode') ORDER BY a.attname COLLATE "C";
SELECT seqinbox_open_instance('S', 'c', '1 day') >= 100 AS by_identity;
RESET search_path;

-- an index under another name counts if it can do the same
SET search_path = create_inbox;
DROP INDEX sequenced_message_unprocessed, sequenced_message_idempotence_id,
    sequence_instance_retain_until, sequence_instance_remove_after,
    sequence_instance_name_context_id;
CREATE INDEX old_state ON sequenced_message (state, message_type);
CREATE INDEX old_idempotence ON sequenced_message (idempotence_id, message_type);
CREATE INDEX old_retain_until ON sequence_instance (retain_until);
CREATE INDEX old_remove_after ON sequence_instance (remove_after);
ALTER TABLE sequence_instance ADD CONSTRAINT old_unique UNIQUE (name, context_id);
SELECT seqinbox_create_inbox();

-- one that cannot does not count: not unique, wrong columns, an expression,
-- partial, another method
ALTER TABLE sequence_instance DROP CONSTRAINT old_unique;
DROP INDEX old_state, old_idempotence, old_retain_until, old_remove_after;
CREATE INDEX not_unique ON sequence_instance (name, context_id);
CREATE INDEX wrong_column ON sequenced_message (message_type, idempotence_id);
CREATE INDEX expression ON sequenced_message (lower(idempotence_id));
CREATE INDEX partial ON sequence_instance (retain_until) WHERE state = 'OPEN';
CREATE INDEX hash ON sequence_instance USING hash (remove_after);
SELECT seqinbox_create_inbox();
RESET search_path;

-- a table that the planner takes for big gets no index here; the NOTICE says
-- how to build it, and everything works meanwhile
BEGIN;
SET LOCAL search_path = create_inbox;
DROP INDEX sequenced_message_idempotence_id;
UPDATE pg_class SET relpages = 1, reltuples = 200000 WHERE oid = 'sequenced_message'::regclass;
SELECT seqinbox_create_inbox();
SELECT to_regclass('sequenced_message_idempotence_id') IS NULL AS not_built;
SELECT state FROM seqinbox_lookup('A', 'new');
ROLLBACK;
-- but without a unique index no inbox would work
BEGIN;
SET LOCAL search_path = create_inbox;
DROP INDEX sequence_instance_name_context_id;
ALTER TABLE sequence_instance DROP COLUMN release_due_at;
UPDATE pg_class SET relpages = 1, reltuples = 200000 WHERE oid = 'sequence_instance'::regclass;
SELECT seqinbox_create_inbox();
\echo :SQLSTATE
ROLLBACK;

-- something invalid, or something else, that has the name of a missing index
CREATE SCHEMA "create_inbox Index";
SET search_path = "create_inbox Index";
SET client_min_messages = warning;
SELECT seqinbox_create_inbox();
RESET client_min_messages;
INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
VALUES (5000, 'S', 'c', 'OPEN', now(), now());
INSERT INTO sequenced_message (id, message_type, cluster_name, topic, sequenced_message_id,
                               idempotence_id, state, created_at, sequence_instance_id)
SELECT 7000 + n, 'A', '', '', gen_random_uuid(), 'same', 'PROCESSED', now(), 5000
  FROM generate_series(1, 2) AS n;
DROP INDEX sequenced_message_idempotence_id;
CREATE UNIQUE INDEX CONCURRENTLY sequenced_message_idempotence_id
    ON sequenced_message (idempotence_id);
SELECT indisvalid FROM pg_index WHERE indexrelid = 'sequenced_message_idempotence_id'::regclass;
DROP INDEX message_header_buffered_message_id;
CREATE INDEX message_header_buffered_message_id ON dead_letter (id);
SELECT seqinbox_create_inbox();
SELECT count(*) AS found FROM seqinbox_lookup('A', 'same');
DROP INDEX sequenced_message_idempotence_id, message_header_buffered_message_id;
SELECT seqinbox_create_inbox();
RESET search_path;

-- rights: nobody but the owner has any
CREATE ROLE regress_seqinbox_owner;
CREATE ROLE regress_seqinbox_other;
CREATE SCHEMA create_inbox_rights;
GRANT CREATE, USAGE ON SCHEMA create_inbox_rights TO regress_seqinbox_owner;
SET SESSION AUTHORIZATION regress_seqinbox_owner;
SET client_min_messages = warning;
SELECT seqinbox_create_inbox('create_inbox_rights');
RESET client_min_messages;
RESET SESSION AUTHORIZATION;
SELECT DISTINCT relkind, pg_get_userbyid(relowner) AS owner, relacl
  FROM pg_class WHERE relnamespace = 'create_inbox_rights'::regnamespace
 ORDER BY relkind;
GRANT USAGE ON SCHEMA create_inbox_rights TO regress_seqinbox_other;
SET SESSION AUTHORIZATION regress_seqinbox_other;
SET search_path = create_inbox_rights;
SELECT seqinbox_claim('A', 'a-1');
\echo :SQLSTATE
SELECT seqinbox_try_claim('A', 'a-1');
\echo :SQLSTATE
SELECT seqinbox_lookup('A', 'a-1');
\echo :SQLSTATE
SELECT seqinbox_store('A', 'a-1', 1, 'PROCESSED');
\echo :SQLSTATE
SELECT seqinbox_open_instance('S', 'c', '1 day');
\echo :SQLSTATE
SELECT seqinbox_fail_and_release(1);
\echo :SQLSTATE
SELECT seqinbox_record_failure('A', 'a-1', 'c', 'error');
\echo :SQLSTATE

-- a role that may not create; the database's name is left out here
\set VERBOSITY sqlstate
SELECT seqinbox_create_inbox('create_inbox_forbidden');
\set VERBOSITY default
RESET SESSION AUTHORIZATION;
CREATE SCHEMA create_inbox_forbidden;
GRANT USAGE ON SCHEMA create_inbox_forbidden TO regress_seqinbox_other;
SET SESSION AUTHORIZATION regress_seqinbox_other;
SELECT seqinbox_create_inbox('create_inbox_forbidden');
\echo :SQLSTATE
-- nor complete somebody else's inbox
RESET SESSION AUTHORIZATION;
ALTER TABLE create_inbox_rights.sequenced_message DROP COLUMN last_error;
SET SESSION AUTHORIZATION regress_seqinbox_other;
SELECT seqinbox_create_inbox('create_inbox_rights');
\echo :SQLSTATE
RESET SESSION AUTHORIZATION;
RESET search_path;

SET client_min_messages = warning;
DROP SCHEMA create_inbox, create_inbox_default, "In ""box"" it's \ %s; --", :"longest",
    create_inbox_view, create_inbox_type, create_inbox_stay, "create_inbox Index",
    create_inbox_rights, create_inbox_forbidden CASCADE;
DROP ROLE regress_seqinbox_owner, regress_seqinbox_other;

-- a name that looks like what stands for the schema in our own commands
SELECT seqinbox_create_inbox('a $inbox b');
SELECT count(*) AS tables FROM pg_tables WHERE schemaname = 'a $inbox b';
SET client_min_messages = warning;
DROP SCHEMA "a $inbox b" CASCADE;
RESET client_min_messages;
SELECT seqinbox_create_inbox('information_schema');
\echo :SQLSTATE
