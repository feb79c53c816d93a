-- What the extension consists of: functions in pg_catalog, each with the
-- properties that its callers rely on, and nothing else.
\set QUIET 1
\pset format unaligned
\pset tuples_only on
BEGIN;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pgtap;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT plan(19);

CREATE TEMPORARY VIEW member AS
SELECT d.classid, d.objid
  FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
 WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'seqinbox';
CREATE TEMPORARY VIEW function AS
SELECT p.*, p.oid::regprocedure::text AS signature
  FROM member m JOIN pg_proc p ON p.oid = m.objid AND m.classid = 'pg_proc'::regclass;

-- the extension
SELECT is((SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'seqinbox'),
          'pg_catalog', 'the extension lives in pg_catalog');
SELECT is((SELECT extrelocatable FROM pg_extension WHERE extname = 'seqinbox'), false,
          'and stays there');
SELECT matches(seqinbox_version(),
               (SELECT '^' || replace(extversion, '.', '\.') || '(\.|$)' FROM pg_extension WHERE extname = 'seqinbox'),
               'the library is of the version of the extension');
SELECT is_empty($$SELECT pg_describe_object(classid, objid, 0) FROM member WHERE classid <> 'pg_proc'::regclass$$,
                'it has functions only, no tables');
SELECT is((SELECT count(*) FROM pg_extension WHERE extname = 'seqinbox' AND extconfig IS NOT NULL), 0::bigint,
          'and nothing that pg_dump would have to treat as its configuration');

-- names, arguments with their defaults, results (IN is shown of procedures only,
-- and only from version 14 on)
SELECT results_eq(
    $$SELECT proname::text COLLATE "default",
             regexp_replace(pg_get_function_arguments(oid), '\mIN ', '', 'g'), pg_get_function_result(oid)
        FROM function ORDER BY proname COLLATE "C"$$,
    $$VALUES
    ('seqinbox_claim', 'message_type text, idempotence_id text, sequence_instance_id bigint DEFAULT NULL::bigint', 'boolean'),
    ('seqinbox_close', 'sequence_instance_id bigint', 'void'),
    ('seqinbox_consume', 'id bigint', 'void'),
    ('seqinbox_consume_all', 'sequence_instance_id bigint', 'void'),
    ('seqinbox_create_inbox', 'inbox_schema name DEFAULT "current_schema"()', 'void'),
    ('seqinbox_dead_letter', 'id bigint, reason text', 'bigint'),
    ('seqinbox_declare', 'declaration jsonb', 'void'),
    ('seqinbox_diagram', 'sequence_name text, context_id text DEFAULT NULL::text', 'text'),
    ('seqinbox_expire', 'id bigint', 'void'),
    ('seqinbox_fail_and_release', 'id bigint, error text DEFAULT NULL::text, retry_after interval DEFAULT NULL::interval', 'boolean'),
    ('seqinbox_grant', 'role name, privilege text', 'void'),
    ('seqinbox_housekeeping', 'removal_delay interval DEFAULT ''1 day''::interval, batch_size integer DEFAULT 1000, max_duration interval DEFAULT ''00:15:00''::interval, keep_dead_letters interval DEFAULT NULL::interval, INOUT closed bigint DEFAULT NULL::bigint, INOUT marked bigint DEFAULT NULL::bigint, INOUT removed bigint DEFAULT NULL::bigint, INOUT buried bigint DEFAULT NULL::bigint, INOUT purged bigint DEFAULT NULL::bigint', NULL),
    ('seqinbox_instance_stats', 'OUT sequence_name text, OUT open_instances bigint, OUT due_instances bigint, OUT expiring_soon bigint, OUT expired bigint, OUT dead_letters bigint, OUT closed_estimate bigint', 'SETOF record'),
    ('seqinbox_is_releasable', 'message_type text, sequence_instance_id bigint', 'boolean'),
    ('seqinbox_lookup', 'message_type text, idempotence_id text, OUT id bigint, OUT state text, OUT sequence_instance_id bigint, OUT attempts integer, OUT created_at timestamp with time zone', 'SETOF record'),
    ('seqinbox_message_stats', 'OUT message_type text, OUT state text, OUT messages bigint, OUT oldest_seconds double precision, OUT estimated boolean', 'SETOF record'),
    ('seqinbox_next', 'sequence_instance_id bigint DEFAULT NULL::bigint, OUT id bigint, OUT sequence_instance_id bigint, OUT message_type text, OUT idempotence_id text, OUT context_id text, OUT message_value bytea, OUT message_key bytea, OUT header_names text[], OUT header_values bytea[], OUT topic text, OUT cluster_name text, OUT message_uuid uuid, OUT traceparent text, OUT attempts integer, OUT received_at timestamp with time zone', 'SETOF record'),
    ('seqinbox_open_instance', 'sequence_name text, context_id text, retention_period interval DEFAULT NULL::interval', 'bigint'),
    ('seqinbox_receive', 'message_type text, idempotence_id text, context_id text, message_value bytea, message_key bytea DEFAULT NULL::bytea, header_names text[] DEFAULT NULL::text[], header_values bytea[] DEFAULT NULL::bytea[], topic text DEFAULT NULL::text, cluster_name text DEFAULT NULL::text, message_uuid uuid DEFAULT NULL::uuid, traceparent text DEFAULT NULL::text, OUT process boolean, OUT outcome text, OUT id bigint, OUT sequence_instance_id bigint, OUT attempts integer, OUT release_due boolean', 'record'),
    ('seqinbox_receive_batch', 'message_types text[], idempotence_ids text[], context_ids text[], message_values bytea[], message_keys bytea[] DEFAULT NULL::bytea[], header_counts integer[] DEFAULT NULL::integer[], header_names text[] DEFAULT NULL::text[], header_values bytea[] DEFAULT NULL::bytea[], topics text[] DEFAULT NULL::text[], cluster_names text[] DEFAULT NULL::text[], message_uuids uuid[] DEFAULT NULL::uuid[], traceparents text[] DEFAULT NULL::text[], OUT ordinal integer, OUT process boolean, OUT outcome text, OUT id bigint, OUT sequence_instance_id bigint, OUT attempts integer, OUT release_due boolean', 'SETOF record'),
    ('seqinbox_record_failure', 'message_type text, idempotence_id text, context_id text, error text, message_value bytea DEFAULT NULL::bytea, message_key bytea DEFAULT NULL::bytea, header_names text[] DEFAULT NULL::text[], header_values bytea[] DEFAULT NULL::bytea[], topic text DEFAULT NULL::text, cluster_name text DEFAULT NULL::text, message_uuid uuid DEFAULT NULL::uuid, traceparent text DEFAULT NULL::text, retry_after interval DEFAULT NULL::interval', 'bigint'),
    ('seqinbox_requeue', 'dead_letter_id bigint, OUT process boolean, OUT outcome text, OUT id bigint, OUT sequence_instance_id bigint, OUT attempts integer, OUT release_due boolean', 'record'),
    ('seqinbox_retry', 'id bigint', 'void'),
    ('seqinbox_store', 'message_type text, idempotence_id text, sequence_instance_id bigint, state text, message_value bytea DEFAULT NULL::bytea, message_key bytea DEFAULT NULL::bytea, header_names text[] DEFAULT NULL::text[], header_values bytea[] DEFAULT NULL::bytea[], topic text DEFAULT NULL::text, cluster_name text DEFAULT NULL::text, message_uuid uuid DEFAULT NULL::uuid, traceparent text DEFAULT NULL::text, error text DEFAULT NULL::text', 'bigint'),
    ('seqinbox_try_claim', 'message_type text, idempotence_id text, sequence_instance_id bigint DEFAULT NULL::bigint', 'text'),
    ('seqinbox_version', '', 'text'),
    ('seqinbox_waiting', 'OUT id bigint, OUT sequence_instance_id bigint, OUT sequence_name text, OUT context_id text, OUT message_type text, OUT idempotence_id text, OUT waiting_since timestamp with time zone, OUT age interval, OUT waits_for text, OUT predecessor text, OUT predecessor_state text, OUT predecessor_error text', 'SETOF record')
    $$, 'each function has the documented arguments and result');

-- properties
SELECT is_empty($$SELECT signature FROM function WHERE pronamespace <> 'pg_catalog'::regnamespace$$,
                'each function is in pg_catalog');
SELECT is_empty($$SELECT signature FROM function WHERE proname !~ '^seqinbox_[a-z]+(_[a-z]+)*$'$$,
                'each bears the prefix');
SELECT is_empty($$SELECT signature FROM function WHERE proisstrict$$, 'none is STRICT');
SELECT is_empty($$SELECT signature FROM function WHERE provolatile <> 'v'$$, 'each is VOLATILE');
SELECT is_empty($$SELECT signature FROM function WHERE proparallel <> 'u'$$, 'each is PARALLEL UNSAFE');
SELECT is_empty($$SELECT signature FROM function WHERE prosecdef$$, 'each is SECURITY INVOKER');
SELECT is_empty($$SELECT signature FROM function WHERE proleakproof OR proconfig IS NOT NULL$$,
                'none is LEAKPROOF or brings settings');
SELECT is_empty($$SELECT signature FROM function WHERE coalesce(obj_description(oid, 'pg_proc'), '') = ''$$,
                'each has a comment');
SELECT is_empty($$SELECT signature FROM function WHERE proacl IS NOT NULL
                   OR NOT has_function_privilege('public', oid, 'EXECUTE')$$,
                'each may be executed by PUBLIC, as by default');
SELECT is_empty($$SELECT signature FROM function
                   WHERE prolang <> (SELECT oid FROM pg_language WHERE lanname = 'c')
                      OR probin <> 'seqinbox' OR prosrc <> proname$$,
                'each is in C, in the library seqinbox, under its own name');
SELECT is_empty($$SELECT proname FROM function GROUP BY proname HAVING count(*) > 1$$,
                'none is overloaded: an argument can always be a literal');

-- the library, found as the server finds it: its SQL-callable symbols are
-- those for which there are pg_finfo_ functions
CREATE TEMPORARY TABLE library AS
SELECT f.content
  FROM unnest(string_to_array(current_setting('dynamic_library_path'), ':')) WITH ORDINALITY AS d (directory, place),
       unnest('{.so,.dylib}'::text[]) AS suffix,
       pg_read_binary_file(replace(directory, '$libdir',
                                   (SELECT setting FROM pg_config WHERE name = 'PKGLIBDIR'))
                           || '/seqinbox' || suffix, 0, 1000000000, true) AS f (content)
 WHERE f.content IS NOT NULL
 ORDER BY place LIMIT 1;
SELECT isnt_empty('SELECT 1 FROM library', 'the library can be read');
SELECT set_eq($$SELECT DISTINCT symbol[1]
                  FROM library, regexp_matches(encode(content, 'escape'), 'pg_finfo_(\w+)', 'g') AS symbol$$,
              'SELECT prosrc FROM function', 'each symbol of the library has its function');

SELECT * FROM finish();
ROLLBACK;
