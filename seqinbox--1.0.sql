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

-- Declarations

CREATE FUNCTION seqinbox_declare(declaration jsonb)
RETURNS void
AS 'MODULE_PATHNAME', 'seqinbox_declare'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_declare(jsonb) IS
'declare sequences, replacing those of the same names';

CREATE FUNCTION seqinbox_diagram(
    sequence_name text,
    context_id text DEFAULT NULL)
RETURNS text
AS 'MODULE_PATHNAME', 'seqinbox_diagram'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_diagram(text, text) IS
'a sequence as a Mermaid flowchart, with the state of one of its instances';

-- Deliveries

CREATE FUNCTION seqinbox_receive(
    message_type text,
    idempotence_id text,
    context_id text,
    message_value bytea,
    message_key bytea DEFAULT NULL,
    header_names text[] DEFAULT NULL,
    header_values bytea[] DEFAULT NULL,
    topic text DEFAULT NULL,
    cluster_name text DEFAULT NULL,
    message_uuid uuid DEFAULT NULL,
    traceparent text DEFAULT NULL,
    OUT process boolean,
    OUT outcome text,
    OUT id bigint,
    OUT sequence_instance_id bigint,
    OUT attempts int,
    OUT release_due boolean)
RETURNS record
AS 'MODULE_PATHNAME', 'seqinbox_receive'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_receive(text, text, text, bytea, bytea, text[],
    bytea[], text, text, uuid, text) IS
'take in a delivery: claim, look-up, decision and record in one call';

CREATE FUNCTION seqinbox_receive_batch(
    message_types text[],
    idempotence_ids text[],
    context_ids text[],
    message_values bytea[],
    message_keys bytea[] DEFAULT NULL,
    header_counts int[] DEFAULT NULL,
    header_names text[] DEFAULT NULL,
    header_values bytea[] DEFAULT NULL,
    topics text[] DEFAULT NULL,
    cluster_names text[] DEFAULT NULL,
    message_uuids uuid[] DEFAULT NULL,
    traceparents text[] DEFAULT NULL,
    OUT ordinal int,
    OUT process boolean,
    OUT outcome text,
    OUT id bigint,
    OUT sequence_instance_id bigint,
    OUT attempts int,
    OUT release_due boolean)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'seqinbox_receive_batch'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_receive_batch(text[], text[], text[], bytea[],
    bytea[], int[], text[], bytea[], text[], text[], uuid[], text[]) IS
'take in several deliveries in one call';

CREATE FUNCTION seqinbox_next(
    sequence_instance_id bigint DEFAULT NULL,
    OUT id bigint,
    OUT sequence_instance_id bigint,
    OUT message_type text,
    OUT idempotence_id text,
    OUT context_id text,
    OUT message_value bytea,
    OUT message_key bytea,
    OUT header_names text[],
    OUT header_values bytea[],
    OUT topic text,
    OUT cluster_name text,
    OUT message_uuid uuid,
    OUT traceparent text,
    OUT attempts int,
    OUT received_at timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'seqinbox_next'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE ROWS 1;

COMMENT ON FUNCTION seqinbox_next(bigint) IS
'the next message to handle, of one instance or of any that is due';

CREATE FUNCTION seqinbox_is_releasable(
    message_type text,
    sequence_instance_id bigint)
RETURNS boolean
AS 'MODULE_PATHNAME', 'seqinbox_is_releasable'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_is_releasable(text, bigint) IS
'does the release condition of a message type hold in an instance now';

-- Operator actions

CREATE FUNCTION seqinbox_consume(id bigint)
RETURNS void
AS 'MODULE_PATHNAME', 'seqinbox_consume'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_consume(bigint) IS
'release a waiting message regardless of its condition';

CREATE FUNCTION seqinbox_expire(id bigint)
RETURNS void
AS 'MODULE_PATHNAME', 'seqinbox_expire'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_expire(bigint) IS
'count a message as processed without its handler';

CREATE FUNCTION seqinbox_retry(id bigint)
RETURNS void
AS 'MODULE_PATHNAME', 'seqinbox_retry'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_retry(bigint) IS
'offer a failed buffered message again';

CREATE FUNCTION seqinbox_consume_all(sequence_instance_id bigint)
RETURNS void
AS 'MODULE_PATHNAME', 'seqinbox_consume_all'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_consume_all(bigint) IS
'release all waiting messages of an instance regardless of their conditions';

CREATE FUNCTION seqinbox_close(sequence_instance_id bigint)
RETURNS void
AS 'MODULE_PATHNAME', 'seqinbox_close'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_close(bigint) IS
'close an instance; messages not yet processed become dead letters';

-- Seeing what happens

CREATE FUNCTION seqinbox_waiting(
    OUT id bigint,
    OUT sequence_instance_id bigint,
    OUT sequence_name text,
    OUT context_id text,
    OUT message_type text,
    OUT idempotence_id text,
    OUT waiting_since timestamptz,
    OUT age interval,
    OUT waits_for text,
    OUT predecessor text,
    OUT predecessor_state text,
    OUT predecessor_error text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'seqinbox_waiting'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_waiting() IS
'what each waiting message waits for, a row for each predecessor it misses';

-- Dead letters

CREATE FUNCTION seqinbox_dead_letter(
    id bigint,
    reason text)
RETURNS bigint
AS 'MODULE_PATHNAME', 'seqinbox_dead_letter'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_dead_letter(bigint, text) IS
'give up on a waiting or failed message: it becomes a dead letter';

CREATE FUNCTION seqinbox_requeue(
    dead_letter_id bigint,
    OUT process boolean,
    OUT outcome text,
    OUT id bigint,
    OUT sequence_instance_id bigint,
    OUT attempts int,
    OUT release_due boolean)
RETURNS record
AS 'MODULE_PATHNAME', 'seqinbox_requeue'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_requeue(bigint) IS
'take in a dead letter again, for seqinbox_next to hand out';

-- Housekeeping

CREATE PROCEDURE seqinbox_housekeeping(
    removal_delay interval DEFAULT '1 day',
    batch_size int DEFAULT 1000,
    max_duration interval DEFAULT '15 minutes',
    keep_dead_letters interval DEFAULT NULL,
    INOUT closed bigint DEFAULT NULL,
    INOUT marked bigint DEFAULT NULL,
    INOUT removed bigint DEFAULT NULL,
    INOUT buried bigint DEFAULT NULL,
    INOUT purged bigint DEFAULT NULL)
AS 'MODULE_PATHNAME', 'seqinbox_housekeeping'
LANGUAGE C;

COMMENT ON PROCEDURE seqinbox_housekeeping(interval, int, interval, interval,
    bigint, bigint, bigint, bigint, bigint) IS
'close and remove instances whose time has come, in batches';

-- Statistics

CREATE FUNCTION seqinbox_message_stats(
    OUT message_type text,
    OUT state text,
    OUT messages bigint,
    OUT oldest_seconds double precision,
    OUT estimated boolean)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'seqinbox_message_stats'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_message_stats() IS
'how many messages of each type are in each state, and the age of the oldest';

CREATE FUNCTION seqinbox_instance_stats(
    OUT sequence_name text,
    OUT open_instances bigint,
    OUT due_instances bigint,
    OUT expiring_soon bigint,
    OUT expired bigint,
    OUT dead_letters bigint,
    OUT closed_estimate bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'seqinbox_instance_stats'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_instance_stats() IS
'how many instances of each sequence are in which condition';

-- Privileges

CREATE FUNCTION seqinbox_grant(
    role name,
    privilege text)
RETURNS void
AS 'MODULE_PATHNAME', 'seqinbox_grant'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

COMMENT ON FUNCTION seqinbox_grant(name, text) IS
'grant a role what consumers, operators or observers of the inbox need';
