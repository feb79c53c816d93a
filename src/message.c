/*-------------------------------------------------------------------------
 *
 * message.c
 *	  Reads and writes sequenced messages.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "args.h"
#include "compat.h"
#include "instance.h"
#include "message.h"
#include "rows.h"
#include "sql.h"
#include "texts.h"

/*
 * History may hold several records of one key.  The one that counts is the
 * one that says most about whether the message still has to be handled.
 */
#define RECORD_COLUMNS \
	"m.id, m.state, m.sequence_instance_id, m.attempts, m.created_at"
#define COUNTING_FIRST \
	"CASE WHEN m.state" EQ "'" STATE_PROCESSED "' THEN 0" \
	" WHEN m.state" EQ "'" STATE_WAITING "' THEN 1 ELSE 2 END," \
	" m.created_at DESC, m.id DESC"

static const Statement lookup_one = {
	"SELECT " RECORD_COLUMNS
	" FROM $inbox.sequenced_message m"
	" WHERE m.message_type" EQ "$1 AND m.idempotence_id" EQ "$2"
	" ORDER BY " COUNTING_FIRST
	" LIMIT 1",
	2, {TEXTOID, TEXTOID}
};

/* all records of each key, those that count first */
static const Statement lookup_rows = {
	"SELECT " RECORD_COLUMNS ", k.place"
	" FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2))"
	" WITH ORDINALITY AS k (message_type, idempotence_id, place)"
	" JOIN $inbox.sequenced_message m"
	" ON m.message_type" EQ "k.message_type"
	" AND m.idempotence_id" EQ "k.idempotence_id"
	" ORDER BY k.place, " COUNTING_FIRST,
	2, {TEXTARRAYOID, TEXTARRAYOID}
};

static const Statement get = {
	"SELECT " RECORD_COLUMNS ", m.message_type, m.idempotence_id"
	" FROM $inbox.sequenced_message m"
	" WHERE m.id" EQ "$1",
	1, {INT8OID}
};

/*
 * One index probe for each type, however many messages the instance has: a
 * sub-select with LIMIT stays a nested loop.
 */
static const Statement find_processed_types = {
	"SELECT t.message_type"
	" FROM pg_catalog.unnest($2) AS t (message_type)"
	" CROSS JOIN LATERAL (SELECT 1 FROM $inbox.sequenced_message m"
	" WHERE m.sequence_instance_id" EQ "$1"
	" AND m.message_type" EQ "t.message_type"
	" AND m.state" EQ "'" STATE_PROCESSED "'"
	" LIMIT 1) AS processed",
	2, {INT8OID, TEXTARRAYOID}
};

static const Statement find_processed_rows = {
	"SELECT t.place"
	" FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2))"
	" WITH ORDINALITY AS t (instance_id, message_type, place)"
	" CROSS JOIN LATERAL (SELECT 1 FROM $inbox.sequenced_message m"
	" WHERE m.sequence_instance_id" EQ "t.instance_id"
	" AND m.message_type" EQ "t.message_type"
	" AND m.state" EQ "'" STATE_PROCESSED "'"
	" LIMIT 1) AS processed",
	2, {INT8ARRAYOID, TEXTARRAYOID}
};

enum
{
	COLUMN_ID = 1,
	COLUMN_STATE,
	COLUMN_INSTANCE_ID,
	COLUMN_ATTEMPTS,
	COLUMN_CREATED_AT,
	COLUMN_MESSAGE_TYPE,
	COLUMN_PLACE = COLUMN_MESSAGE_TYPE,
	COLUMN_IDEMPOTENCE_ID
};

/* parameters that insert and update share, in this order */
enum
{
	PARAM_STATE,
	PARAM_INSTANCE_ID,
	PARAM_ATTEMPTS,
	PARAM_ERROR,
	PARAM_RETRY_AT,
	PARAM_NOW,
	PARAM_TOPIC,
	PARAM_CLUSTER_NAME,
	PARAM_UUID,
	PARAM_TRACE_ID_HIGH,
	PARAM_TRACE_ID,
	PARAM_SPAN_ID,
	PARAM_TRACE_ID_STRING,
	PARAM_SAMPLED,
	PARAMS,

	/* only of insert */
	PARAM_MESSAGE_TYPE = PARAMS,
	PARAM_IDEMPOTENCE_ID,
	INSERT_PARAMS,

	/* only of update */
	PARAM_ID = PARAMS,
	UPDATE_PARAMS
};

#define PARAM_TYPES \
	TEXTOID, INT8OID, INT4OID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID, \
	TEXTOID, TEXTOID, UUIDOID, INT8OID, INT8OID, INT8OID, TEXTOID, BOOLOID

/*
 * Topic and cluster name are NOT NULL, but not every message comes from a
 * broker that has them.
 */
#define INSERT \
	"INSERT INTO $inbox.sequenced_message" \
	" (state, sequence_instance_id, attempts, last_error, retry_at," \
	" created_at, topic, cluster_name, sequenced_message_id, trace_id_high," \
	" trace_id, span_id, trace_id_string, sampled, message_type," \
	" idempotence_id)"
#define INSERT_VALUES \
	" $1, $2, $3, $4, $5," \
	" $6, COALESCE($7, ''), COALESCE($8, '')," \
	" COALESCE($9, pg_catalog.gen_random_uuid()), $10," \
	" $11, $12, $13, $14, $15," \
	" $16"

static const Statement insert = {
	INSERT " VALUES (" INSERT_VALUES ") RETURNING id",
	INSERT_PARAMS, {PARAM_TYPES, TEXTOID, TEXTOID}
};

/*
 * Unless there is a record of the message.  What this leaves behind in the
 * instance is asked in the same statement, which does not yet see its row.
 */
static const Statement insert_first = {
	INSERT " SELECT" INSERT_VALUES
	" WHERE NOT EXISTS (SELECT 1 FROM $inbox.sequenced_message m"
	" WHERE m.message_type" EQ "$15 AND m.idempotence_id" EQ "$16)"
	" RETURNING id, CASE WHEN $1" EQ "'" STATE_WAITING "' THEN true"
	" ELSE (SELECT CASE WHEN " INSTANCE_WAITS("$6") " THEN true"
	" WHEN " INSTANCE_IS_COMPLETE_WITH("$15") " THEN false END"
	" FROM $inbox.sequence_instance i WHERE i.id" EQ "$2) END",
	INSERT_PARAMS, {PARAM_TYPES, TEXTOID, TEXTOID}
};

/* what is taken in has not failed */
static const Statement insert_rows = {
	"INSERT INTO $inbox.sequenced_message"
	" (state, sequence_instance_id, created_at, topic, cluster_name,"
	" sequenced_message_id, trace_id_high, trace_id, span_id,"
	" trace_id_string, sampled, message_type, idempotence_id)"
	" SELECT r.state, r.instance_id, r.created_at,"
	" COALESCE(r.topic, ''), COALESCE(r.cluster_name, ''),"
	" COALESCE(r.uuid, pg_catalog.gen_random_uuid()), r.trace_id_high,"
	" r.trace_id, r.span_id, r.trace_id_string, r.sampled, r.message_type,"
	" r.idempotence_id"
	" FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2),"
	" pg_catalog.unnest($3), pg_catalog.unnest($4), pg_catalog.unnest($5),"
	" pg_catalog.unnest($6), pg_catalog.unnest($7), pg_catalog.unnest($8),"
	" pg_catalog.unnest($9), pg_catalog.unnest($10), pg_catalog.unnest($11),"
	" pg_catalog.unnest($12), pg_catalog.unnest($13))"
	" WITH ORDINALITY AS r (state, instance_id, created_at, topic,"
	" cluster_name, uuid, trace_id_high, trace_id, span_id, trace_id_string,"
	" sampled, message_type, idempotence_id, place)"
	" ORDER BY r.place"
	" RETURNING id",
	13, {TEXTARRAYOID, INT8ARRAYOID, TIMESTAMPTZARRAYOID, TEXTARRAYOID,
	TEXTARRAYOID, UUIDARRAYOID, INT8ARRAYOID, INT8ARRAYOID, INT8ARRAYOID,
	TEXTARRAYOID, BOOLARRAYOID, TEXTARRAYOID, TEXTARRAYOID}
};

/* the parameters of insert, in the order of insert_rows */
static const int row_params[] = {
	PARAM_STATE, PARAM_INSTANCE_ID, PARAM_NOW, PARAM_TOPIC,
	PARAM_CLUSTER_NAME, PARAM_UUID, PARAM_TRACE_ID_HIGH, PARAM_TRACE_ID,
	PARAM_SPAN_ID, PARAM_TRACE_ID_STRING, PARAM_SAMPLED, PARAM_MESSAGE_TYPE,
	PARAM_IDEMPOTENCE_ID
};

/* a processed message stays processed */
static const Statement update = {
	"UPDATE $inbox.sequenced_message m SET state = $1,"
	" sequence_instance_id = $2, attempts = m.attempts" PLUS "$3,"
	" last_error = COALESCE($4, m.last_error), retry_at = $5,"
	" pending_action = NULL, state_changed_at = $6,"
	" topic = COALESCE($7, m.topic),"
	" cluster_name = COALESCE($8, m.cluster_name),"
	" sequenced_message_id = COALESCE($9, m.sequenced_message_id),"
	" trace_id_high = COALESCE($10, m.trace_id_high),"
	" trace_id = COALESCE($11, m.trace_id),"
	" span_id = COALESCE($12, m.span_id),"
	" parent_span_id = CASE WHEN $12 IS NULL THEN m.parent_span_id END,"
	" trace_id_string = COALESCE($13, m.trace_id_string),"
	" sampled = COALESCE($14, m.sampled)"
	" WHERE m.id" EQ "$15"
	" AND (m.state" NE "'" STATE_PROCESSED "' OR $1" EQ "'" STATE_PROCESSED "')",
	UPDATE_PARAMS, {PARAM_TYPES, INT8OID}
};

/*
 * A message that an operator wanted to be released stays so: its condition
 * may not hold yet when it is offered again.
 */
static const Statement set_failed = {
	"UPDATE $inbox.sequenced_message m SET state = '" STATE_FAILED "',"
	" attempts = m.attempts" PLUS "1,"
	" last_error = $2, retry_at = $3, state_changed_at = $4"
	" WHERE m.id" EQ "$1 AND m.state" NE "'" STATE_PROCESSED "'",
	4, {INT8OID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID}
};

static const Statement set_consume = {
	"UPDATE $inbox.sequenced_message m"
	" SET pending_action = '" ACTION_CONSUME "',"
	" retry_at = CASE WHEN m.state" EQ "'" STATE_FAILED "' THEN $2 END"
	" WHERE m.id" EQ "$1 AND m.state" NE "'" STATE_PROCESSED "'"
	" RETURNING m.state",
	2, {INT8OID, TIMESTAMPTZOID}
};

static const Statement set_retry = {
	"UPDATE $inbox.sequenced_message m SET retry_at = $2"
	" WHERE m.id" EQ "$1 AND m.state" EQ "'" STATE_FAILED "'",
	2, {INT8OID, TIMESTAMPTZOID}
};

static const Statement expire = {
	"UPDATE $inbox.sequenced_message m SET state = '" STATE_PROCESSED "',"
	" state_changed_at = $2, pending_action = NULL, retry_at = NULL"
	" WHERE m.id" EQ "$1 AND m.state" NE "'" STATE_PROCESSED "'",
	2, {INT8OID, TIMESTAMPTZOID}
};

static int64
size_of(const void *value)
{
	return value == NULL ? 0 : VARSIZE_ANY(value);
}

void
message_check_size(const Message *message)
{
	const Payload *payload = &message->payload;

	check_size(size_of(payload->value) + size_of(payload->key) +
			   size_of(payload->header_names) +
			   size_of(payload->header_values) +
			   size_of(message->topic) + size_of(message->cluster_name),
			   "message", MAX_MESSAGE_SIZE);
}

/*
 * Reads a message from the arguments of a function: type and idempotence ID
 * are the first two, the rest begins with the value.
 */
void
message_from_args(FunctionCallInfo fcinfo, int first_payload_arg,
				  Message *message)
{
	int			n = first_payload_arg;

	claim_key_from_args(fcinfo, &message->key);
	message->payload.value = ARG_BYTEA(n);
	message->payload.key = ARG_BYTEA(n + 1);
	message->payload.header_names = ARG_ARRAY(n + 2);
	message->payload.header_values = ARG_ARRAY(n + 3);
	payload_count_headers(&message->payload);
	message->topic = ARG_TEXT(n + 4);
	message->cluster_name = ARG_TEXT(n + 5);
	message->uuid = ARG_UUID(n + 6);
	traceparent_parse(ARG_TEXT(n + 7), &message->trace);
	message_check_size(message);
}

bool
state_is(const char *state, const char *other)
{
	return strcmp(state, other) == 0;
}

const char *
state_from_arg(FunctionCallInfo fcinfo, int n)
{
	static const char *const states[] = {
		STATE_WAITING, STATE_PROCESSED, STATE_FAILED
	};
	char	   *state = text_to_cstring(arg_name(fcinfo, n, "state",
												 MAX_TYPE_LENGTH));

	for (size_t i = 0; i < lengthof(states); i++)
	{
		if (state_is(state, states[i]))
			return states[i];
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unknown state \"%s\"", state),
			 errhint("The states are %s, %s and %s.",
					 STATE_WAITING, STATE_PROCESSED, STATE_FAILED)));
	return NULL;				/* keep compiler quiet */
}

static void
read_record(int row, Record *record)
{
	Datum		value;

	memset(record, 0, sizeof(*record));
	record->state = "";
	if (statement_get_from(row, COLUMN_ID, INT8OID, &value))
		record->id = DatumGetInt64(value);
	if (statement_get_from(row, COLUMN_STATE, TEXTOID, &value))
		record->state = TextDatumGetCString(value);
	if (statement_get_from(row, COLUMN_INSTANCE_ID, INT8OID, &value))
		record->instance_id = DatumGetInt64(value);
	if (statement_get_from(row, COLUMN_ATTEMPTS, INT4OID, &value))
		record->attempts = DatumGetInt32(value);
	if (statement_get_from(row, COLUMN_CREATED_AT, TIMESTAMPTZOID, &value))
		record->created_at = DatumGetTimestampTz(value);
}

/*
 * The record that counts for a key, however many history left.
 */
bool
message_lookup(Oid inbox, const ClaimKey *key, Record *record)
{
	Datum		values[2];

	values[0] = PointerGetDatum(key->message_type);
	values[1] = PointerGetDatum(key->idempotence_id);
	if (statement_run(inbox, &lookup_one, values, NULL) == 0)
		return false;
	read_record(0, record);
	return true;
}

static void
lookup_each(Oid inbox, Lookup **lookups, int count)
{
	Rows		keys;
	uint64		found;

	rows_begin(&keys, 2, count);
	for (int i = 0; i < count; i++)
	{
		lookups[i]->found = false;
		rows_add(&keys);
		rows_set_pointer(&keys, 0, lookups[i]->key->message_type);
		rows_set_pointer(&keys, 1, lookups[i]->key->idempotence_id);
	}
	found = rows_run(inbox, &lookup_rows, &keys);
	for (uint64 row = 0; row < found; row++)
	{
		Lookup	   *lookup = lookups[rows_place((int) row, COLUMN_PLACE)];

		if (lookup->found)
			continue;
		lookup->found = true;
		read_record((int) row, &lookup->record);
	}
}

/*
 * As message_lookup(), for several keys at once.
 */
void
messages_lookup(Oid inbox, Lookup **lookups, int count)
{
	if (count == 1)
		lookups[0]->found = message_lookup(inbox, lookups[0]->key,
										   &lookups[0]->record);
	else if (count > 1)
		lookup_each(inbox, lookups, count);
}

void
serialization_failure(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not serialize access due to concurrent update")));
}

static void
require_latest(Oid inbox, const Lookup *lookup)
{
	const Record *record = &lookup->record;
	Record		latest;

	if (message_lookup(inbox, lookup->key, &latest) != lookup->found ||
		(lookup->found && (latest.id != record->id ||
						   !state_is(latest.state, record->state))))
		serialization_failure();
}

/*
 * As messages_lookup(), for whoever has the claims and acts on what is found.
 * A claim can be won that was freed after the transaction's snapshot was
 * taken; the record that was written with it must not be overlooked.
 */
void
messages_lookup_current(Oid inbox, Lookup **lookups, int count)
{
	messages_lookup(inbox, lookups, count);
	if (!IsolationUsesXactSnapshot())
		return;

	statements_read_latest(true);
	for (int i = 0; i < count; i++)
		require_latest(inbox, lookups[i]);
	statements_read_latest(false);
}

bool
message_lookup_current(Oid inbox, const ClaimKey *key, Record *record)
{
	Lookup		lookup = {.key = key};
	Lookup	   *lookups[1] = {&lookup};

	messages_lookup_current(inbox, lookups, 1);
	*record = lookup.record;
	return lookup.found;
}

void
message_get(Oid inbox, int64 id, Record *record, ClaimKey *key)
{
	Datum		values[1] = {Int64GetDatum(id)};

	if (statement_run(inbox, &get, values, NULL) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_NO_DATA_FOUND),
				 errmsg("sequenced message %lld does not exist",
						(long long) id)));
	read_record(0, record);
	key->message_type = statement_get_text(COLUMN_MESSAGE_TYPE);
	key->idempotence_id = statement_get_text(COLUMN_IDEMPOTENCE_ID);
}

/*
 * Reads the columns trace_id_high, trace_id, span_id and sampled of the first
 * row.
 */
void
message_read_trace(int first_column, TraceContext *trace)
{
	Datum		value;

	memset(trace, 0, sizeof(*trace));
	if (statement_get(first_column, INT8OID, &value))
		trace->trace_id_high = (uint64) DatumGetInt64(value);
	if (statement_get(first_column + 1, INT8OID, &value))
		trace->trace_id = (uint64) DatumGetInt64(value);
	if (statement_get(first_column + 2, INT8OID, &value))
		trace->span_id = (uint64) DatumGetInt64(value);
	if (statement_get(first_column + 3, BOOLOID, &value))
		trace->sampled = DatumGetBool(value);
	trace->present = trace->span_id != 0 &&
		(trace->trace_id_high != 0 || trace->trace_id != 0);
}

/*
 * Which of the given types have been processed in an instance.
 */
List *
message_processed_types(Oid inbox, int64 instance_id,
						const List *message_types)
{
	Datum		values[2];
	uint64		rows;
	List	   *processed = NIL;

	if (message_types == NIL)
		return NIL;
	values[0] = Int64GetDatum(instance_id);
	values[1] = PointerGetDatum(text_list_array(message_types));
	rows = statement_run(inbox, &find_processed_types, values, NULL);
	for (uint64 row = 0; row < rows; row++)
	{
		Datum		type;

		if (statement_get_from((int) row, 1, TEXTOID, &type))
			processed = lappend(processed, DatumGetTextPCopy(type));
	}
	return processed;
}

/*
 * As message_processed_types(), for several instances at once.
 */
void
messages_processed_types(Oid inbox, ProcessedTypes **wanted, int count)
{
	Rows		types;
	ProcessedTypes **owners;
	uint64		found;
	int			total = 0;

	if (count == 1)
	{
		wanted[0]->processed = message_processed_types(inbox,
													   wanted[0]->instance_id,
													   wanted[0]->types);
		return;
	}
	for (int i = 0; i < count; i++)
		total += list_length(wanted[i]->types);
	if (total == 0)
		return;

	rows_begin(&types, 2, total);
	owners = palloc(sizeof(ProcessedTypes *) * total);
	for (int i = 0; i < count; i++)
	{
		ListCell   *lc;

		foreach(lc, wanted[i]->types)
		{
			owners[types.count] = wanted[i];
			rows_add(&types);
			rows_set(&types, 0, Int64GetDatum(wanted[i]->instance_id));
			rows_set_pointer(&types, 1, lfirst(lc));
		}
	}
	found = rows_run(inbox, &find_processed_rows, &types);
	for (uint64 row = 0; row < found; row++)
	{
		int			place = rows_place((int) row, 1);

		owners[place]->processed = lappend(owners[place]->processed,
										   DatumGetPointer(types.values[types.capacity + place]));
	}
}

void
message_refuse_state(const Record *record)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("sequenced message %lld is %s",
					(long long) record->id, record->state)));
}

/*
 * Says why a step was not possible that only some states allow.
 */
void
message_refuse(Oid inbox, int64 id)
{
	Record		record;
	ClaimKey	key;

	message_get(inbox, id, &record, &key);
	message_refuse_state(&record);
}

static void
set_param(Datum *values, char *nulls, int param, bool given, Datum value)
{
	values[param] = value;
	nulls[param] = given ? ' ' : 'n';
}

static void
set_text_param(Datum *values, char *nulls, int param, const text *value)
{
	set_param(values, nulls, param, value != NULL, PointerGetDatum(value));
}

static void
set_trace_params(Datum *values, char *nulls, const TraceContext *trace)
{
	bool		given = trace->present;

	set_param(values, nulls, PARAM_TRACE_ID_HIGH, given,
			  Int64GetDatum((int64) trace->trace_id_high));
	set_param(values, nulls, PARAM_TRACE_ID, given,
			  Int64GetDatum((int64) trace->trace_id));
	set_param(values, nulls, PARAM_SPAN_ID, given,
			  Int64GetDatum((int64) trace->span_id));
	set_param(values, nulls, PARAM_SAMPLED, given,
			  BoolGetDatum(trace->sampled));
	set_text_param(values, nulls, PARAM_TRACE_ID_STRING,
				   given ? trace_id_string(trace) : NULL);
}

static void
set_params(Datum *values, char *nulls, int64 instance_id,
		   const Message *message, const Verdict *verdict)
{
	bool		failed = state_is(verdict->state, STATE_FAILED);

	set_text_param(values, nulls, PARAM_STATE,
				   cstring_to_text(verdict->state));
	set_param(values, nulls, PARAM_INSTANCE_ID, true,
			  Int64GetDatum(instance_id));
	set_param(values, nulls, PARAM_ATTEMPTS, true,
			  Int32GetDatum(failed ? 1 : 0));
	set_text_param(values, nulls, PARAM_ERROR, verdict->error);
	set_param(values, nulls, PARAM_RETRY_AT,
			  !TIMESTAMP_IS_NOEND(verdict->retry_at),
			  TimestampTzGetDatum(verdict->retry_at));
	set_param(values, nulls, PARAM_NOW, true,
			  TimestampTzGetDatum(GetCurrentTimestamp()));
	set_text_param(values, nulls, PARAM_TOPIC, message->topic);
	set_text_param(values, nulls, PARAM_CLUSTER_NAME, message->cluster_name);
	set_param(values, nulls, PARAM_UUID, message->uuid != NULL,
			  PointerGetDatum(message->uuid));
	set_trace_params(values, nulls, &message->trace);
}

static void
set_insert_params(Datum *values, char *nulls, int64 instance_id,
				  const Message *message, const Verdict *verdict)
{
	set_params(values, nulls, instance_id, message, verdict);
	set_text_param(values, nulls, PARAM_MESSAGE_TYPE,
				   message->key.message_type);
	set_text_param(values, nulls, PARAM_IDEMPOTENCE_ID,
				   message->key.idempotence_id);
}

int64
message_insert(Oid inbox, int64 instance_id, const Message *message,
			   const Verdict *verdict)
{
	Datum		values[INSERT_PARAMS];
	char		nulls[INSERT_PARAMS];

	set_insert_params(values, nulls, instance_id, message, verdict);
	if (statement_run(inbox, &insert, values, nulls) == 0)
		elog(ERROR, "sequenced message was not inserted");
	return statement_get_id(0);
}

/*
 * For whoever has the claim: inserts a message of which there is no record.
 * False when there is one.
 *
 * Tells also whether others wait in the instance, and if not, whether it is
 * complete with this message.
 */
bool
message_insert_first(Oid inbox, NewMessage *message, bool *waits,
					 bool *complete)
{
	Verdict		verdict = {message->state, NULL, DT_NOEND};
	Datum		values[INSERT_PARAMS];
	char		nulls[INSERT_PARAMS];
	Datum		left;

	set_insert_params(values, nulls, message->instance_id, message->message,
					  &verdict);
	if (statement_run(inbox, &insert_first, values, nulls) == 0)
		return false;
	message->id = statement_get_id(0);
	*waits = *complete = false;
	if (statement_get(2, BOOLOID, &left))
	{
		*waits = DatumGetBool(left);
		*complete = !*waits;
	}
	return true;
}

static void
add_row(Rows *rows, const NewMessage *new)
{
	Verdict		verdict = {new->state, NULL, DT_NOEND};
	Datum		values[INSERT_PARAMS];
	char		nulls[INSERT_PARAMS];

	set_insert_params(values, nulls, new->instance_id, new->message,
					  &verdict);
	rows_add(rows);
	for (size_t i = 0; i < lengthof(row_params); i++)
	{
		if (nulls[row_params[i]] == ' ')
			rows_set(rows, (int) i, values[row_params[i]]);
	}
}

/*
 * Inserts messages in their order, and fills in their IDs.
 */
void
messages_insert(Oid inbox, NewMessage *messages, int count)
{
	Rows		rows;

	if (count == 0)
		return;
	if (count == 1)
	{
		Verdict		verdict = {messages->state, NULL, DT_NOEND};

		messages->id = message_insert(inbox, messages->instance_id,
									  messages->message, &verdict);
		return;
	}
	rows_begin(&rows, lengthof(row_params), count);
	for (int i = 0; i < count; i++)
		add_row(&rows, &messages[i]);
	if (rows_run(inbox, &insert_rows, &rows) != (uint64) count)
		elog(ERROR, "not all sequenced messages were inserted");
	for (int i = 0; i < count; i++)
		messages[i].id = statement_get_id(i);
}

/*
 * False when the message has been processed or removed since it was found.
 */
bool
message_update(Oid inbox, int64 id, int64 instance_id,
			   const Message *message, const Verdict *verdict)
{
	Datum		values[UPDATE_PARAMS];
	char		nulls[UPDATE_PARAMS];

	set_params(values, nulls, instance_id, message, verdict);
	set_param(values, nulls, PARAM_ID, true, Int64GetDatum(id));
	return statement_run(inbox, &update, values, nulls) > 0;
}

/*
 * False when the message has been processed or removed since it was found.
 */
bool
message_set_failed(Oid inbox, int64 id, const Verdict *verdict)
{
	Datum		values[4];
	char		nulls[4];

	set_param(values, nulls, 0, true, Int64GetDatum(id));
	set_text_param(values, nulls, 1, verdict->error);
	set_param(values, nulls, 2, !TIMESTAMP_IS_NOEND(verdict->retry_at),
			  TimestampTzGetDatum(verdict->retry_at));
	set_param(values, nulls, 3, true,
			  TimestampTzGetDatum(GetCurrentTimestamp()));
	return statement_run(inbox, &set_failed, values, nulls) > 0;
}

/*
 * Marks a waiting or failed message to be released now, regardless of its
 * condition.
 */
void
message_set_consume(Oid inbox, int64 id)
{
	Datum		values[2];
	char	   *state;

	values[0] = Int64GetDatum(id);
	values[1] = TimestampTzGetDatum(GetCurrentTimestamp());
	if (statement_run(inbox, &set_consume, values, NULL) == 0)
		message_refuse(inbox, id);
	state = text_to_cstring(statement_get_text(1));
	if (state_is(state, STATE_FAILED))
		payload_require(inbox, id);
}

/*
 * Sets when a failed message is offered again.
 */
bool
message_set_retry(Oid inbox, int64 id, TimestampTz retry_at)
{
	Datum		values[2];
	char		nulls[2];

	set_param(values, nulls, 0, true, Int64GetDatum(id));
	set_param(values, nulls, 1, !TIMESTAMP_IS_NOEND(retry_at),
			  TimestampTzGetDatum(retry_at));
	return statement_run(inbox, &set_retry, values, nulls) > 0;
}

/*
 * Counts a message as processed without its handler.
 */
bool
message_expire(Oid inbox, int64 id)
{
	Datum		values[2];

	values[0] = Int64GetDatum(id);
	values[1] = TimestampTzGetDatum(GetCurrentTimestamp());
	if (statement_run(inbox, &expire, values, NULL) == 0)
		return false;
	payload_drop(inbox, id);
	return true;
}
