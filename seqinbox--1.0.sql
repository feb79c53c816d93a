/* seqinbox--1.0.sql: the functions of the seqinbox extension */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION seqinbox" to load this file. \quit

/*
 * No function is STRICT: a NULL result for a NULL argument could be taken for
 * "duplicate" and lose a message.
 */

-- The inbox

CREATE FUNCTION seqinbox_version()
RETURNS text
AS 'MODULE_PATHNAME', 'seqinbox_version'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_version() IS
'version of the loaded seqinbox library';

CREATE FUNCTION seqinbox_create_inbox(
    inbox_schema name DEFAULT pg_catalog.current_schema())
RETURNS void
AS 'MODULE_PATHNAME', 'seqinbox_create_inbox'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_create_inbox(name) IS
'create, adopt or upgrade the inbox in a schema';

-- Claims

CREATE FUNCTION seqinbox_claim(
    message_type text,
    idempotence_id text,
    sequence_instance_id bigint DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'seqinbox_claim'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_claim(text, text, bigint) IS
'claim a message for this transaction, waiting for whoever is deciding on it';

CREATE FUNCTION seqinbox_try_claim(
    message_type text,
    idempotence_id text,
    sequence_instance_id bigint DEFAULT NULL)
RETURNS text
AS 'MODULE_PATHNAME', 'seqinbox_try_claim'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_try_claim(text, text, bigint) IS
'claim a message without waiting: CLAIMED, DUPLICATE or IN_FLIGHT';

-- Instances

CREATE FUNCTION seqinbox_open_instance(
    sequence_name text,
    context_id text,
    retention_period interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'seqinbox_open_instance'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_open_instance(text, text, interval) IS
'find or create the sequence instance of a context and hold it';

-- Records

CREATE FUNCTION seqinbox_store(
    message_type text,
    idempotence_id text,
    sequence_instance_id bigint,
    state text,
    message_value bytea DEFAULT NULL,
    message_key bytea DEFAULT NULL,
    header_names text[] DEFAULT NULL,
    header_values bytea[] DEFAULT NULL,
    topic text DEFAULT NULL,
    cluster_name text DEFAULT NULL,
    message_uuid uuid DEFAULT NULL,
    traceparent text DEFAULT NULL,
    error text DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'seqinbox_store'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_store(text, text, bigint, text, bytea, bytea,
    text[], bytea[], text, text, uuid, text, text) IS
'insert or update the record of a message';

CREATE FUNCTION seqinbox_lookup(
    message_type text,
    idempotence_id text,
    OUT id bigint,
    OUT state text,
    OUT sequence_instance_id bigint,
    OUT attempts int,
    OUT created_at timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'seqinbox_lookup'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE ROWS 1;

COMMENT ON FUNCTION seqinbox_lookup(text, text) IS
'the record that counts for a message, if there is one';

CREATE FUNCTION seqinbox_fail_and_release(
    id bigint,
    error text DEFAULT NULL,
    retry_after interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'seqinbox_fail_and_release'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_fail_and_release(bigint, text, interval) IS
'record that a buffered message failed and free its claim';

CREATE FUNCTION seqinbox_record_failure(
    message_type text,
    idempotence_id text,
    context_id text,
    error text,
    message_value bytea DEFAULT NULL,
    message_key bytea DEFAULT NULL,
    header_names text[] DEFAULT NULL,
    header_values bytea[] DEFAULT NULL,
    topic text DEFAULT NULL,
    cluster_name text DEFAULT NULL,
    message_uuid uuid DEFAULT NULL,
    traceparent text DEFAULT NULL,
    retry_after interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'seqinbox_record_failure'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_record_failure(text, text, text, text, bytea,
    bytea, text[], bytea[], text, text, uuid, text, interval) IS
'record that a message failed on its first delivery';
