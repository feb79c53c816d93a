-- Which index shows whether a claim is taken: a valid unique index of just the
-- key, whatever its name. Others are passed over, and where there is none, the
-- statements decide alone. Either way the answers are the same.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
\set SHOW_CONTEXT never
SELECT seqinbox_create_inbox('claim_index');
SET search_path = claim_index;
SELECT seqinbox_open_instance('S', 'c', '1 day') AS instance \gset

-- whether a claim is known to be taken by a look: that writes nothing, so the
-- transaction gets no ID
CREATE FUNCTION is_looked_at(instance bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF seqinbox_claim('A', 'taken', instance) THEN
        RAISE 'a claim that was taken is taken again';
    END IF;
    RETURN pg_current_xact_id_if_assigned() IS NULL;
END
$$;
SELECT seqinbox_claim('A', 'taken', :instance);
SELECT is_looked_at(:instance) AS by_primary_key;

-- an index of another name does; one that has more columns is none of the key
ALTER TABLE sequential_inbox_idempotence DROP CONSTRAINT sequential_inbox_idempotence_pkey;
CREATE UNIQUE INDEX by_another_name ON sequential_inbox_idempotence (message_type, idempotence_id);
SELECT is_looked_at(:instance) AS by_another_name;
ALTER TABLE sequential_inbox_idempotence
  ADD CONSTRAINT sequential_inbox_idempotence_pkey PRIMARY KEY (message_type, idempotence_id, created_at);
SELECT is_looked_at(:instance) AS after_another_primary_key;
DROP INDEX by_another_name;

-- these do not: the other way round, a part, an expression, not unique, not
-- B-tree
ALTER TABLE sequential_inbox_idempotence DROP CONSTRAINT sequential_inbox_idempotence_pkey;
CREATE UNIQUE INDEX reversed ON sequential_inbox_idempotence (idempotence_id, message_type);
CREATE UNIQUE INDEX part ON sequential_inbox_idempotence (message_type, idempotence_id) WHERE message_type <> 'Z';
CREATE UNIQUE INDEX expression ON sequential_inbox_idempotence (message_type, (idempotence_id || ''));
CREATE UNIQUE INDEX other_column ON sequential_inbox_idempotence (message_type, created_at);
CREATE INDEX not_unique ON sequential_inbox_idempotence (message_type, idempotence_id);
CREATE INDEX not_btree ON sequential_inbox_idempotence USING hash (idempotence_id);
SELECT is_looked_at(:instance) AS by_none;
SELECT seqinbox_try_claim('A', 'taken', :instance) AS taken, seqinbox_try_claim('A', 'free', :instance) AS free,
       seqinbox_claim('A', 'free', :instance) AS taken_now;
SELECT seqinbox_claim('A', 'alone'), seqinbox_claim('A', 'alone') AS again;

-- where a conflict is found only at the end of the transaction there are no
-- claims, nor where the key is not unique
DROP INDEX reversed;
ALTER TABLE sequential_inbox_idempotence ADD CONSTRAINT postponed UNIQUE (message_type, idempotence_id) DEFERRABLE;
SELECT seqinbox_claim('A', 'taken', :instance);
\echo :SQLSTATE
SELECT seqinbox_try_claim('A', 'taken', :instance);
\echo :SQLSTATE
ALTER TABLE sequential_inbox_idempotence DROP CONSTRAINT postponed;
SELECT seqinbox_claim('A', 'nothing', :instance);
\echo :SQLSTATE
SELECT seqinbox_try_claim('A', 'nothing', :instance);
\echo :SQLSTATE
SELECT count(*) FROM sequential_inbox_idempotence WHERE idempotence_id = 'nothing';
ALTER TABLE sequential_inbox_idempotence ADD PRIMARY KEY (message_type, idempotence_id);
SELECT is_looked_at(:instance) AS by_primary_key;

-- who may not insert may not look either
CREATE ROLE regress_claim_index;
GRANT USAGE ON SCHEMA claim_index TO regress_claim_index;
GRANT SELECT ON ALL TABLES IN SCHEMA claim_index TO regress_claim_index;
SET ROLE regress_claim_index;
SELECT seqinbox_claim('A', 'taken', :instance);
\echo :SQLSTATE
SELECT seqinbox_claim('A', 'free as well', :instance);
\echo :SQLSTATE
RESET ROLE;

-- a domain over text, or varchar, is compared as text; char is not
ALTER TABLE sequential_inbox_idempotence ALTER message_type TYPE varchar(600);
SELECT is_looked_at(:instance) AS varchar;
BEGIN;
ALTER TABLE sequential_inbox_idempotence ALTER message_type TYPE char(10);
SELECT is_looked_at(:instance) AS char;
ROLLBACK;

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA claim_index CASCADE;
DROP ROLE regress_claim_index;
