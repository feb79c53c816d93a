-- Tables that are no inbox, made by anybody, just to have the functions take a
-- number for the address of a text: each value is read as what it is, or not at
-- all. (Before, the server crashed.) test/hostile/tables.py tries all columns.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
\set SHOW_CONTEXT never
CREATE ROLE regress_other_types;
CREATE SCHEMA other_types AUTHORIZATION regress_other_types;
SET ROLE regress_other_types;
SET search_path = other_types;

-- the look at the claim, by an index that compares numbers
CREATE TABLE sequential_inbox_idempotence (
    message_type bigint, idempotence_id bigint, PRIMARY KEY (message_type, idempotence_id));
INSERT INTO sequential_inbox_idempotence VALUES (9223372036854775807, 9223372036854775807);
SELECT seqinbox_claim('A', 'a');
\echo :SQLSTATE
SELECT seqinbox_claim('A', 'a', 1);
\echo :SQLSTATE
SELECT seqinbox_try_claim('A', 'a');
\echo :SQLSTATE
DROP TABLE sequential_inbox_idempotence;
CREATE TABLE sequential_inbox_idempotence (
    message_type name, idempotence_id name, PRIMARY KEY (message_type, idempotence_id));
INSERT INTO sequential_inbox_idempotence VALUES ('A', 'a');
SELECT seqinbox_claim('A', 'a', 1);
\echo :SQLSTATE
DROP TABLE sequential_inbox_idempotence;

-- results of statements
SELECT seqinbox_create_inbox('other_types');
INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until, release_due_at)
VALUES (1001, 'S', 'c', 'OPEN', now(), now(), now());
SELECT seqinbox_store('A', 'a', 1001, 'WAITING', 'value') > 0 AS stored;
SELECT seqinbox_consume_all(1001);
BEGIN;
ALTER TABLE buffered_message DROP COLUMN message_value;
ALTER TABLE buffered_message ADD COLUMN message_value bigint DEFAULT 9223372036854775807;
SELECT seqinbox_next(1001);
\echo :SQLSTATE
ROLLBACK;
-- rows that are passed on as they are
BEGIN;
ALTER TABLE sequence_instance DROP COLUMN name;
ALTER TABLE sequence_instance ADD COLUMN name name DEFAULT 'S';
ALTER TABLE sequence_declaration DROP COLUMN name CASCADE;
ALTER TABLE sequence_declaration ADD COLUMN name name DEFAULT 'S';
ALTER TABLE dead_letter DROP COLUMN sequence_name;
ALTER TABLE dead_letter ADD COLUMN sequence_name name DEFAULT 'S';
SELECT sequence_name FROM seqinbox_instance_stats();
\echo :SQLSTATE
ROLLBACK;
-- types of the same form are as good
BEGIN;
CREATE DOMAIN value AS bytea;
ALTER TABLE buffered_message ALTER message_value TYPE value;
ALTER TABLE message_header ALTER header_name TYPE varchar(100);
ALTER TABLE sequenced_message ALTER last_error TYPE varchar;
SELECT id > 0 AS found, message_value FROM seqinbox_next(1001);
ROLLBACK;

RESET search_path;
RESET ROLE;
DROP SCHEMA other_types CASCADE;
DROP ROLE regress_other_types;
