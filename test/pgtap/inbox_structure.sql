-- What a new inbox consists of. Other programs know these tables, so each
-- name, type and default here is a promise.
\set QUIET 1
\pset format unaligned
\pset tuples_only on
BEGIN;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pgtap;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT plan(21);

DO $$BEGIN PERFORM seqinbox_create_inbox('pgtap_inbox'); END$$;
CREATE TEMPORARY VIEW inbox_relation AS
SELECT * FROM pg_class WHERE relnamespace = 'pgtap_inbox'::regnamespace;
-- definitions then do not name the schema
SELECT set_config('search_path', 'pgtap_inbox, ' || current_setting('search_path'), true) \gset

SELECT results_eq(
    $$SELECT relkind::text, relname::text COLLATE "default" FROM inbox_relation
       WHERE relkind NOT IN ('i') ORDER BY relkind, relname COLLATE "C"$$,
    $$VALUES
    ('S', 'buffered_message_sequence'),
    ('S', 'dead_letter_sequence'),
    ('S', 'message_header_sequence'),
    ('S', 'sequence_instance_sequence'),
    ('S', 'sequenced_message_sequence'),
    ('r', 'buffered_message'),
    ('r', 'dead_letter'),
    ('r', 'message_header'),
    ('r', 'message_type_declaration'),
    ('r', 'sequence_declaration'),
    ('r', 'sequence_instance'),
    ('r', 'sequenced_message'),
    ('r', 'sequential_inbox_idempotence')
    $$, 'tables and sequences');

-- columns: in their order, with type, NOT NULL, default and collation (none:
-- the default one, or a type without)
CREATE TEMPORARY VIEW inbox_column AS
SELECT r.relname::text COLLATE "default" AS "table", a.attnum, a.attname::text COLLATE "default" AS name,
       format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS not_null,
       pg_get_expr(d.adbin, d.adrelid) COLLATE "default" AS "default",
       (SELECT collname::text COLLATE "default" FROM pg_collation c
         WHERE c.oid = a.attcollation AND c.oid <> 'pg_catalog.default'::regcollation) AS collated
  FROM inbox_relation r
  JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum
 WHERE r.relkind = 'r';
PREPARE columns_of(text) AS
SELECT name, type, not_null, "default", collated FROM inbox_column WHERE "table" = $1 ORDER BY attnum;

SELECT results_eq(
    $$EXECUTE columns_of('sequence_instance')$$,
    $$VALUES
    ('id', 'bigint', true, 'nextval(''sequence_instance_sequence''::regclass)', NULL),
    ('name', 'text', true, NULL, 'C'),
    ('context_id', 'text', true, NULL, 'C'),
    ('state', 'text', true, NULL, NULL),
    ('created_at', 'timestamp with time zone', true, NULL, NULL),
    ('closed_at', 'timestamp with time zone', false, NULL, NULL),
    ('retain_until', 'timestamp with time zone', true, NULL, NULL),
    ('remove_after', 'timestamp with time zone', false, NULL, NULL),
    ('pending_action', 'text', false, NULL, NULL),
    ('created_in_recording_mode', 'boolean', true, 'false', NULL),
    ('release_due_at', 'timestamp with time zone', false, NULL, NULL)
    $$, 'columns of sequence_instance');
SELECT results_eq(
    $$EXECUTE columns_of('sequenced_message')$$,
    $$VALUES
    ('id', 'bigint', true, 'nextval(''sequenced_message_sequence''::regclass)', NULL),
    ('message_type', 'text', true, NULL, 'C'),
    ('cluster_name', 'text', true, NULL, NULL),
    ('topic', 'text', true, NULL, NULL),
    ('sequenced_message_id', 'uuid', true, NULL, NULL),
    ('idempotence_id', 'text', true, NULL, 'C'),
    ('state', 'text', true, NULL, NULL),
    ('trace_id_high', 'bigint', false, NULL, NULL),
    ('trace_id', 'bigint', false, NULL, NULL),
    ('span_id', 'bigint', false, NULL, NULL),
    ('parent_span_id', 'bigint', false, NULL, NULL),
    ('trace_id_string', 'text', false, NULL, NULL),
    ('sampled', 'boolean', false, NULL, NULL),
    ('created_at', 'timestamp with time zone', true, NULL, NULL),
    ('state_changed_at', 'timestamp with time zone', false, NULL, NULL),
    ('sequence_instance_id', 'bigint', true, NULL, NULL),
    ('pending_action', 'text', false, NULL, NULL),
    ('attempts', 'integer', true, '0', NULL),
    ('last_error', 'text', false, NULL, NULL),
    ('retry_at', 'timestamp with time zone', false, NULL, NULL)
    $$, 'columns of sequenced_message');
SELECT results_eq(
    $$EXECUTE columns_of('sequential_inbox_idempotence')$$,
    $$VALUES
    ('message_type', 'text', true, NULL::text, 'C'),
    ('idempotence_id', 'text', true, NULL, 'C'),
    ('sequence_instance_id', 'bigint', true, NULL, NULL),
    ('created_at', 'timestamp with time zone', true, NULL, NULL)
    $$, 'columns of sequential_inbox_idempotence');
SELECT results_eq(
    $$EXECUTE columns_of('buffered_message')$$,
    $$VALUES
    ('id', 'bigint', true, 'nextval(''buffered_message_sequence''::regclass)', NULL::text),
    ('sequence_instance_id', 'bigint', true, NULL, NULL),
    ('sequenced_message_id', 'bigint', true, NULL, NULL),
    ('message_key', 'bytea', false, NULL, NULL),
    ('message_value', 'bytea', false, NULL, NULL)
    $$, 'columns of buffered_message');
SELECT results_eq(
    $$EXECUTE columns_of('message_header')$$,
    $$VALUES
    ('id', 'bigint', true, 'nextval(''message_header_sequence''::regclass)', NULL::text),
    ('buffered_message_id', 'bigint', true, NULL, NULL),
    ('header_name', 'text', true, NULL, NULL),
    ('header_value', 'bytea', false, NULL, NULL)
    $$, 'columns of message_header');
SELECT results_eq(
    $$EXECUTE columns_of('sequence_declaration')$$,
    $$VALUES
    ('name', 'text', true, NULL, 'C'),
    ('retention_period', 'interval', true, NULL, NULL),
    ('sequencing_start_timestamp', 'timestamp with time zone', false, NULL, NULL),
    ('declared_at', 'timestamp with time zone', true, 'now()', NULL)
    $$, 'columns of sequence_declaration');
SELECT results_eq(
    $$EXECUTE columns_of('message_type_declaration')$$,
    $$VALUES
    ('message_type', 'text', true, NULL, 'C'),
    ('sub_type', 'text', false, NULL, NULL),
    ('sequence_name', 'text', true, NULL, 'C'),
    ('place', 'integer', true, '0', NULL),
    ('release_condition', 'jsonb', false, NULL, NULL)
    $$, 'columns of message_type_declaration');
SELECT results_eq(
    $$EXECUTE columns_of('dead_letter')$$,
    $$VALUES
    ('id', 'bigint', true, 'nextval(''dead_letter_sequence''::regclass)', NULL),
    ('sequence_name', 'text', true, NULL, 'C'),
    ('context_id', 'text', true, NULL, NULL),
    ('message_type', 'text', true, NULL, 'C'),
    ('cluster_name', 'text', true, NULL, NULL),
    ('topic', 'text', true, NULL, NULL),
    ('sequenced_message_id', 'uuid', true, NULL, NULL),
    ('idempotence_id', 'text', true, NULL, 'C'),
    ('state', 'text', true, NULL, NULL),
    ('trace_id_high', 'bigint', false, NULL, NULL),
    ('trace_id', 'bigint', false, NULL, NULL),
    ('span_id', 'bigint', false, NULL, NULL),
    ('parent_span_id', 'bigint', false, NULL, NULL),
    ('trace_id_string', 'text', false, NULL, NULL),
    ('sampled', 'boolean', false, NULL, NULL),
    ('created_at', 'timestamp with time zone', true, NULL, NULL),
    ('attempts', 'integer', true, NULL, NULL),
    ('last_error', 'text', false, NULL, NULL),
    ('reason', 'text', true, NULL, NULL),
    ('removed_at', 'timestamp with time zone', true, NULL, NULL),
    ('payload_buffered', 'boolean', true, NULL, NULL),
    ('message_key', 'bytea', false, NULL, NULL),
    ('message_value', 'bytea', false, NULL, NULL),
    ('header_names', 'text[]', false, NULL, NULL),
    ('header_values', 'bytea[]', false, NULL, NULL)
    $$, 'columns of dead_letter');
SELECT is_empty(
    $$SELECT "table", name FROM inbox_column
       WHERE (("table" = 'sequence_instance' AND name = 'release_due_at')
              OR ("table" = 'sequenced_message' AND name IN ('attempts', 'last_error', 'retry_at')))
         AND not_null AND coalesce("default" !~ '^[0-9]+$', true)$$,
    'a column that other programs do not know is nullable or has a constant default');

-- indexes, with their columns and the rows that they are limited to
CREATE TEMPORARY VIEW inbox_index AS
SELECT t.relname::text COLLATE "default" AS "table", r.relname::text COLLATE "default" AS name,
       i.indisprimary AS "primary", i.indisunique AS "unique",
       (SELECT string_agg(pg_get_indexdef(r.oid, n, false), ', ' ORDER BY n) FROM generate_series(1, i.indnatts) AS n) AS columns,
       pg_get_expr(i.indpred, i.indrelid) COLLATE "default" AS predicate
  FROM inbox_relation r JOIN pg_index i ON i.indexrelid = r.oid JOIN pg_class t ON t.oid = i.indrelid;
SELECT results_eq(
    'SELECT * FROM inbox_index ORDER BY "table" COLLATE "C", "primary" DESC, name COLLATE "C"',
    $$VALUES
    ('buffered_message', 'buffered_message_pkey', true, true, 'id', NULL),
    ('buffered_message', 'buffered_message_sequence_instance_id', false, false, 'sequence_instance_id', NULL),
    ('buffered_message', 'buffered_message_sequenced_message_id', false, false, 'sequenced_message_id', NULL),
    ('dead_letter', 'dead_letter_pkey', true, true, 'id', NULL),
    ('dead_letter', 'dead_letter_removed_at', false, false, 'removed_at', NULL),
    ('dead_letter', 'dead_letter_sequence_name', false, false, 'sequence_name', NULL),
    ('message_header', 'message_header_pkey', true, true, 'id', NULL),
    ('message_header', 'message_header_buffered_message_id', false, false, 'buffered_message_id', NULL),
    ('message_type_declaration', 'message_type_declaration_pkey', true, true, 'message_type', NULL),
    ('message_type_declaration', 'message_type_declaration_sequence_name', false, false, 'sequence_name', NULL),
    ('sequence_declaration', 'sequence_declaration_pkey', true, true, 'name', NULL),
    ('sequence_instance', 'sequence_instance_pkey', true, true, 'id', NULL),
    ('sequence_instance', 'sequence_instance_name_context_id', false, true, 'name, context_id', NULL),
    ('sequence_instance', 'sequence_instance_open', false, false, 'name, retain_until, created_at', '(state = ''OPEN''::text)'),
    ('sequence_instance', 'sequence_instance_pending_action', false, false, 'id', '(pending_action IS NOT NULL)'),
    ('sequence_instance', 'sequence_instance_release_due_at', false, false, 'release_due_at', '(release_due_at IS NOT NULL)'),
    ('sequence_instance', 'sequence_instance_remove_after', false, false, 'remove_after', NULL),
    ('sequence_instance', 'sequence_instance_retain_until', false, false, 'retain_until', NULL),
    ('sequenced_message', 'sequenced_message_pkey', true, true, 'id', NULL),
    ('sequenced_message', 'sequenced_message_idempotence_id', false, false, 'idempotence_id', NULL),
    ('sequenced_message', 'sequenced_message_pending_action', false, false, 'sequence_instance_id', '(pending_action IS NOT NULL)'),
    ('sequenced_message', 'sequenced_message_sequence_instance_id', false, false, 'sequence_instance_id, message_type', NULL),
    ('sequenced_message', 'sequenced_message_to_release', false, false, 'sequence_instance_id, message_type, created_at, id',
     '((state = ''WAITING''::text) OR (state = ''FAILED''::text))'),
    ('sequenced_message', 'sequenced_message_unprocessed', false, false, 'message_type',
     '((state = ''WAITING''::text) OR (state = ''FAILED''::text))'),
    ('sequential_inbox_idempotence', 'sequential_inbox_idempotence_pkey', true, true, 'message_type, idempotence_id', NULL),
    ('sequential_inbox_idempotence', 'sequential_inbox_idempotence_sequence_instance_id', false, false, 'sequence_instance_id', NULL)
    $$, 'indexes');
SELECT is_empty($$SELECT r.relname FROM inbox_relation r JOIN pg_index i ON i.indexrelid = r.oid
                   WHERE NOT (indisvalid AND indisready AND indislive AND indimmediate)
                      OR relam <> (SELECT oid FROM pg_am WHERE amname = 'btree')$$,
                'each is a valid btree');
SELECT is_empty($$SELECT c."table", c.name FROM inbox_column c
                    JOIN inbox_relation r ON r.relname = c."table"
                    JOIN pg_index i ON i.indrelid = r.oid AND c.attnum = ANY (i.indkey)
                   WHERE c.type = 'text' AND c.collated IS DISTINCT FROM 'C'$$,
                'no index depends on the collations of the operating system');

-- constraints
SELECT results_eq(
    $$SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint
       WHERE conrelid IN (SELECT oid FROM inbox_relation) AND contype = 'f'
       ORDER BY conrelid::regclass::text COLLATE "C", conname COLLATE "C"$$,
    $$VALUES
    ('buffered_message', 'FOREIGN KEY (sequence_instance_id) REFERENCES sequence_instance(id)'),
    ('buffered_message', 'FOREIGN KEY (sequenced_message_id) REFERENCES sequenced_message(id)'),
    ('message_header', 'FOREIGN KEY (buffered_message_id) REFERENCES buffered_message(id)'),
    ('message_type_declaration', 'FOREIGN KEY (sequence_name) REFERENCES sequence_declaration(name) ON DELETE CASCADE'),
    ('sequenced_message', 'FOREIGN KEY (sequence_instance_id) REFERENCES sequence_instance(id)'),
    ('sequential_inbox_idempotence', 'FOREIGN KEY (sequence_instance_id) REFERENCES sequence_instance(id) ON DELETE CASCADE')
    $$, 'foreign keys');
SELECT is_empty($$SELECT conname FROM pg_constraint
                   WHERE conrelid IN (SELECT oid FROM inbox_relation) AND contype = 'f'
                     AND confrelid NOT IN (SELECT oid FROM inbox_relation)$$,
                'no foreign key leads out of the schema');
SELECT is_empty($$SELECT conname FROM pg_constraint
                   WHERE conrelid IN (SELECT oid FROM inbox_relation) AND contype NOT IN ('p', 'f', 'n')$$,
                'besides keys and NOT NULL there are no constraints');

-- what a distributed schema cannot hold, or would hide
SELECT is_empty($$SELECT tgname FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM inbox_relation) AND NOT tgisinternal$$,
                'no triggers but those of the foreign keys');
SELECT is_empty($$SELECT rulename FROM pg_rewrite WHERE ev_class IN (SELECT oid FROM inbox_relation)$$, 'no rules');
SELECT is_empty($$SELECT relname FROM inbox_relation
                   WHERE relpersistence <> 'p' OR relrowsecurity OR relispartition OR reloptions IS NOT NULL
                      OR relacl IS NOT NULL OR relowner <> current_user::regrole
                      OR oid IN (SELECT inhrelid FROM pg_inherits)
                      OR relkind = 'r' AND relam <> (SELECT oid FROM pg_am WHERE amname = 'heap')$$,
                'plain logged tables without options, of the caller, with rights for nobody else');
SELECT is_empty($$SELECT seqrelid::regclass FROM pg_sequence
                   WHERE seqrelid IN (SELECT oid FROM inbox_relation)
                     AND (seqtypid, seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle)
                         <> ('bigint'::regtype, 1, 1, 1, 9223372036854775807, 1, false)$$,
                'plain sequences');
SELECT is_empty($$SELECT pg_describe_object(classid, objid, objsubid) FROM pg_depend
                   WHERE deptype = 'e' AND classid = 'pg_class'::regclass
                     AND objid IN (SELECT oid FROM inbox_relation)$$,
                'nothing of it belongs to the extension');

SELECT * FROM finish();
ROLLBACK;
