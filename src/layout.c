/*-------------------------------------------------------------------------
 *
 * layout.c
 *	  What an inbox consists of: its tables, columns, defaults and indexes.
 *
 * This is the only definition; creating, adopting and upgrading an inbox all
 * follow it.  $inbox stands for the schema.  A column that was added after
 * the first version of its table must be nullable or have a constant default,
 * since programs that do not know it insert into the same tables, and so that
 * adding it does not rewrite the table.
 *
 * Text that is a key is COLLATE "C": its order then does not change with the
 * operating system, and comparing is faster.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "inbox.h"
#include "instance.h"
#include "layout.h"
#include "message.h"
#include "sql.h"

#define BIGINT		"pg_catalog.int8"
#define BOOLEAN		"pg_catalog.bool"
#define BYTEA		"pg_catalog.bytea"
#define INTEGER		"pg_catalog.int4"
#define INTERVAL	"pg_catalog.interval"
#define JSONB		"pg_catalog.jsonb"
#define TEXT		"pg_catalog.text"
#define TIMESTAMPTZ	"pg_catalog.timestamptz"
#define UUID		"pg_catalog.uuid"
#define ARRAY_OF(type) type "[]"

#define NOT_NULL	"NOT NULL"
#define KEY			"COLLATE pg_catalog.\"C\" NOT NULL"
#define REFERENCES(table) NOT_NULL " REFERENCES $inbox." table

#define COLUMN(name, type, constraint) {name, type, constraint, NULL, NULL}
#define COLUMN_WITH_DEFAULT(name, type, value) \
	{name, type, NOT_NULL, value, NULL}
#define ID_COLUMN(sequence) {"id", BIGINT, NOT_NULL, NULL, sequence}

#define TRACE_COLUMNS \
	COLUMN("trace_id_high", BIGINT, NULL), \
	COLUMN("trace_id", BIGINT, NULL), \
	COLUMN("span_id", BIGINT, NULL), \
	COLUMN("parent_span_id", BIGINT, NULL), \
	COLUMN("trace_id_string", TEXT, NULL), \
	COLUMN("sampled", BOOLEAN, NULL)

#define UNIQUE(name, key1, key2) {name, {key1, key2}, true, NULL, {NULL}}
#define INDEX(name, key) {name, {key}, false, NULL, {NULL}}

static const ColumnLayout sequence_instance_columns[] = {
	ID_COLUMN(INSTANCE_SEQUENCE),
	COLUMN("name", TEXT, KEY),
	COLUMN("context_id", TEXT, KEY),
	COLUMN("state", TEXT, NOT_NULL),
	COLUMN("created_at", TIMESTAMPTZ, NOT_NULL),
	COLUMN("closed_at", TIMESTAMPTZ, NULL),
	COLUMN("retain_until", TIMESTAMPTZ, NOT_NULL),
	COLUMN("remove_after", TIMESTAMPTZ, NULL),
	COLUMN("pending_action", TEXT, NULL),
	COLUMN_WITH_DEFAULT("created_in_recording_mode", BOOLEAN, "false"),
	COLUMN("release_due_at", TIMESTAMPTZ, NULL)
};

static const IndexLayout sequence_instance_indexes[] = {
	UNIQUE("sequence_instance_name_context_id", "name", "context_id"),
	INDEX("sequence_instance_retain_until", "retain_until"),
	INDEX("sequence_instance_remove_after", "remove_after"),
	{"sequence_instance_release_due_at", {"release_due_at"}, false,
	"release_due_at IS NOT NULL", {"release_due_at"}},
	{"sequence_instance_pending_action", {"id"}, false,
	"pending_action IS NOT NULL", {NULL}},
	{"sequence_instance_open", {"name", "retain_until", "created_at"}, false,
	"state" EQ "'" INSTANCE_OPEN "'", {NULL}}
};

static const ColumnLayout sequenced_message_columns[] = {
	ID_COLUMN("sequenced_message_sequence"),
	COLUMN("message_type", TEXT, KEY),
	COLUMN("cluster_name", TEXT, NOT_NULL),
	COLUMN("topic", TEXT, NOT_NULL),
	COLUMN("sequenced_message_id", UUID, NOT_NULL),
	COLUMN("idempotence_id", TEXT, KEY),
	COLUMN("state", TEXT, NOT_NULL),
	TRACE_COLUMNS,
	COLUMN("created_at", TIMESTAMPTZ, NOT_NULL),
	COLUMN("state_changed_at", TIMESTAMPTZ, NULL),
	COLUMN("sequence_instance_id", BIGINT, REFERENCES("sequence_instance")),
	COLUMN("pending_action", TEXT, NULL),
	COLUMN_WITH_DEFAULT("attempts", INTEGER, "0"),
	COLUMN("last_error", TEXT, NULL),
	COLUMN("retry_at", TIMESTAMPTZ, NULL)
};

#define IS_UNPROCESSED \
	"state" EQ "'" STATE_WAITING "' OR state" EQ "'" STATE_FAILED "'"

/*
 * The index on idempotence_id is not unique: historical duplicates exist and
 * must not block anything.
 */
static const IndexLayout sequenced_message_indexes[] = {
	{"sequenced_message_sequence_instance_id",
		{"sequence_instance_id", "message_type"}, false, NULL,
	{"sequence_instance_id"}},
	INDEX("sequenced_message_idempotence_id", "idempotence_id"),
	{"sequenced_message_unprocessed", {"message_type"}, false,
	IS_UNPROCESSED, {"state", "message_type"}},
	{"sequenced_message_to_release",
		{"sequence_instance_id", "message_type", "created_at", "id"}, false,
	IS_UNPROCESSED, {NULL}},
	{"sequenced_message_pending_action", {"sequence_instance_id"}, false,
	"pending_action IS NOT NULL", {NULL}}
};

static const ColumnLayout claim_columns[] = {
	COLUMN("message_type", TEXT, KEY),
	COLUMN("idempotence_id", TEXT, KEY),
	COLUMN("sequence_instance_id", BIGINT, REFERENCES("sequence_instance") " ON DELETE CASCADE"),
	COLUMN("created_at", TIMESTAMPTZ, NOT_NULL)
};

static const IndexLayout claim_indexes[] = {
	INDEX(CLAIM_TABLE "_sequence_instance_id", "sequence_instance_id")
};

static const ColumnLayout buffered_message_columns[] = {
	ID_COLUMN("buffered_message_sequence"),
	COLUMN("sequence_instance_id", BIGINT, REFERENCES("sequence_instance")),
	COLUMN("sequenced_message_id", BIGINT, REFERENCES("sequenced_message")),
	COLUMN("message_key", BYTEA, NULL),
	COLUMN("message_value", BYTEA, NULL)
};

static const IndexLayout buffered_message_indexes[] = {
	INDEX("buffered_message_sequence_instance_id", "sequence_instance_id"),
	INDEX("buffered_message_sequenced_message_id", "sequenced_message_id")
};

static const ColumnLayout message_header_columns[] = {
	ID_COLUMN("message_header_sequence"),
	COLUMN("buffered_message_id", BIGINT, REFERENCES("buffered_message")),
	COLUMN("header_name", TEXT, NOT_NULL),
	COLUMN("header_value", BYTEA, NULL)
};

static const IndexLayout message_header_indexes[] = {
	INDEX("message_header_buffered_message_id", "buffered_message_id")
};

static const ColumnLayout sequence_declaration_columns[] = {
	COLUMN("name", TEXT, KEY),
	COLUMN("retention_period", INTERVAL, NOT_NULL),
	COLUMN("sequencing_start_timestamp", TIMESTAMPTZ, NULL),
	COLUMN_WITH_DEFAULT("declared_at", TIMESTAMPTZ, "pg_catalog.now()")
};

static const ColumnLayout message_type_declaration_columns[] = {
	COLUMN("message_type", TEXT, KEY),
	COLUMN("sub_type", TEXT, NULL),
	COLUMN("sequence_name", TEXT, "COLLATE pg_catalog.\"C\" " REFERENCES("sequence_declaration") " ON DELETE CASCADE"),
	COLUMN_WITH_DEFAULT("place", INTEGER, "0"),
	COLUMN("release_condition", JSONB, NULL)
};

static const IndexLayout message_type_declaration_indexes[] = {
	INDEX("message_type_declaration_sequence_name", "sequence_name")
};

static const ColumnLayout dead_letter_columns[] = {
	ID_COLUMN("dead_letter_sequence"),
	COLUMN("sequence_name", TEXT, KEY),
	COLUMN("context_id", TEXT, NOT_NULL),
	COLUMN("message_type", TEXT, KEY),
	COLUMN("cluster_name", TEXT, NOT_NULL),
	COLUMN("topic", TEXT, NOT_NULL),
	COLUMN("sequenced_message_id", UUID, NOT_NULL),
	COLUMN("idempotence_id", TEXT, KEY),
	COLUMN("state", TEXT, NOT_NULL),
	TRACE_COLUMNS,
	COLUMN("created_at", TIMESTAMPTZ, NOT_NULL),
	COLUMN("attempts", INTEGER, NOT_NULL),
	COLUMN("last_error", TEXT, NULL),
	COLUMN("reason", TEXT, NOT_NULL),
	COLUMN("removed_at", TIMESTAMPTZ, NOT_NULL),
	COLUMN("payload_buffered", BOOLEAN, NOT_NULL),
	COLUMN("message_key", BYTEA, NULL),
	COLUMN("message_value", BYTEA, NULL),
	COLUMN("header_names", ARRAY_OF(TEXT), NULL),
	COLUMN("header_values", ARRAY_OF(BYTEA), NULL)
};

static const IndexLayout dead_letter_indexes[] = {
	INDEX("dead_letter_removed_at", "removed_at"),
	INDEX("dead_letter_sequence_name", "sequence_name")
};

#define LIST_OF(array) array, lengthof(array)

const TableLayout inbox_layout[] = {
	{INSTANCE_TABLE, UNIQUE("sequence_instance_pkey", "id", NULL),
	LIST_OF(sequence_instance_columns), LIST_OF(sequence_instance_indexes)},
	{"sequenced_message", UNIQUE("sequenced_message_pkey", "id", NULL),
	LIST_OF(sequenced_message_columns), LIST_OF(sequenced_message_indexes)},
	{CLAIM_TABLE, UNIQUE(CLAIM_KEY, "message_type", "idempotence_id"),
	LIST_OF(claim_columns), LIST_OF(claim_indexes)},
	{"buffered_message", UNIQUE("buffered_message_pkey", "id", NULL),
	LIST_OF(buffered_message_columns), LIST_OF(buffered_message_indexes)},
	{"message_header", UNIQUE("message_header_pkey", "id", NULL),
	LIST_OF(message_header_columns), LIST_OF(message_header_indexes)},
	{"sequence_declaration",
		UNIQUE("sequence_declaration_pkey", "name", NULL),
	LIST_OF(sequence_declaration_columns), NULL, 0},
	{TYPE_DECLARATION_TABLE,
		UNIQUE("message_type_declaration_pkey", "message_type", NULL),
		LIST_OF(message_type_declaration_columns),
	LIST_OF(message_type_declaration_indexes)},
	{"dead_letter", UNIQUE("dead_letter_pkey", "id", NULL),
	LIST_OF(dead_letter_columns), LIST_OF(dead_letter_indexes)}
};

const int	inbox_layout_count = lengthof(inbox_layout);
