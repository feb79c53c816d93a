/*-------------------------------------------------------------------------
 *
 * waiting.c
 *	  The SQL-callable function that tells what each waiting message waits
 *	  for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "condition.h"
#include "inbox.h"
#include "message.h"
#include "sql.h"
#include "texts.h"

static const Statement find_waiting = {
	"SELECT m.id, m.sequence_instance_id, i.name, i.context_id,"
	" m.message_type, m.idempotence_id, m.created_at,"
	" t.message_type IS NOT NULL, t.release_condition"
	" FROM $inbox.sequenced_message m"
	" JOIN $inbox.sequence_instance i ON i.id" EQ "m.sequence_instance_id"
	" LEFT JOIN $inbox.message_type_declaration t"
	" ON t.message_type" EQ "m.message_type" AS_C
	" AND t.sequence_name" EQ "i.name" AS_C
	" WHERE m.state" EQ "'" STATE_WAITING "'"
	" ORDER BY m.created_at, m.id",
	0, {0}
};

/* the best record of each type; no row for a type without any */
static const Statement find_predecessors = {
	"SELECT t.message_type, p.state, p.last_error"
	" FROM pg_catalog.unnest($2) AS t (message_type)"
	" CROSS JOIN LATERAL (SELECT m.state, m.last_error"
	" FROM $inbox.sequenced_message m"
	" WHERE m.sequence_instance_id" EQ "$1"
	" AND m.message_type" EQ "t.message_type"
	" ORDER BY CASE WHEN m.state" EQ "'" STATE_PROCESSED "' THEN 0"
	" WHEN m.state" EQ "'" STATE_WAITING "' THEN 1 ELSE 2 END, m.id DESC"
	" LIMIT 1) AS p",
	2, {INT8OID, TEXTARRAYOID}
};

/* what a message waits for */
#define FOR_PREDECESSOR "PREDECESSOR"
#define FOR_RELEASE "RELEASE"
#define FOR_DECLARATION "DECLARATION"

#define NOT_RECEIVED "NOT_RECEIVED"

enum
{
	COLUMN_ID,
	COLUMN_INSTANCE_ID,
	COLUMN_SEQUENCE_NAME,
	COLUMN_CONTEXT_ID,
	COLUMN_MESSAGE_TYPE,
	COLUMN_IDEMPOTENCE_ID,
	COLUMN_WAITING_SINCE,
	COLUMN_AGE,
	COLUMN_WAITS_FOR,
	COLUMN_PREDECESSOR,
	COLUMN_PREDECESSOR_STATE,
	COLUMN_PREDECESSOR_ERROR,
	COLUMNS
};

typedef struct WaitingMessage
{
	Datum		values[COLUMNS];
	bool		nulls[COLUMNS];
	int64		instance_id;
	bool		declared;
	Condition  *condition;
} WaitingMessage;

typedef struct Predecessor
{
	text	   *message_type;
	text	   *state;
	text	   *error;			/* or NULL */
} Predecessor;

static void
set_text(WaitingMessage *message, int column, const text *value)
{
	message->values[column] = PointerGetDatum(value);
	message->nulls[column] = value == NULL;
}

static void
copy_text(WaitingMessage *message, int row, int column)
{
	Datum		value;

	if (statement_get_from(row, column + 1, TEXTOID, &value))
		set_text(message, column, DatumGetTextPCopy(value));
}

static void
read_waiting(int row, TimestampTz now, WaitingMessage *message)
{
	TimestampTz since;
	Datum		value;

	memset(message, 0, sizeof(*message));
	memset(message->nulls, true, sizeof(message->nulls));
	for (int column = COLUMN_SEQUENCE_NAME; column <= COLUMN_IDEMPOTENCE_ID;
		 column++)
		copy_text(message, row, column);

	(void) statement_get_from(row, COLUMN_ID + 1, INT8OID, &value);
	message->values[COLUMN_ID] = value;
	(void) statement_get_from(row, COLUMN_INSTANCE_ID + 1, INT8OID, &value);
	message->values[COLUMN_INSTANCE_ID] = value;
	message->instance_id = DatumGetInt64(value);
	(void) statement_get_from(row, COLUMN_WAITING_SINCE + 1, TIMESTAMPTZOID, &value);
	since = DatumGetTimestampTz(value);
	message->values[COLUMN_WAITING_SINCE] = TimestampTzGetDatum(since);
	if (!TIMESTAMP_NOT_FINITE(since))
	{
		message->values[COLUMN_AGE] =
			DirectFunctionCall2(timestamp_mi, TimestampTzGetDatum(now),
								TimestampTzGetDatum(since));
		message->nulls[COLUMN_AGE] = false;
	}
	message->nulls[COLUMN_ID] = false;
	message->nulls[COLUMN_INSTANCE_ID] = false;
	message->nulls[COLUMN_WAITING_SINCE] = false;

	message->declared = statement_get_from(row, 8, BOOLOID, &value) &&
		DatumGetBool(value);
	if (statement_get_from(row, 9, JSONBOID, &value))
		message->condition = condition_read(DatumGetJsonbPCopy(value));
}

static List *
read_predecessors(Oid inbox, const WaitingMessage *message)
{
	List	   *types = condition_predecessors(message->condition, NIL);
	List	   *predecessors = NIL;
	Datum		values[2];
	uint64		rows;

	values[0] = Int64GetDatum(message->instance_id);
	values[1] = PointerGetDatum(text_list_array(types));
	rows = statement_run(inbox, &find_predecessors, values, NULL);
	for (uint64 row = 0; row < rows; row++)
	{
		Predecessor *predecessor = palloc0(sizeof(Predecessor));
		Datum		value;

		if (statement_get_from((int) row, 1, TEXTOID, &value))
			predecessor->message_type = DatumGetTextPCopy(value);
		if (statement_get_from((int) row, 2, TEXTOID, &value))
			predecessor->state = DatumGetTextPCopy(value);
		if (statement_get_from((int) row, 3, TEXTOID, &value))
			predecessor->error = DatumGetTextPCopy(value);
		predecessors = lappend(predecessors, predecessor);
	}
	return predecessors;
}

static List *
processed_of(const List *predecessors)
{
	text	   *processed = cstring_to_text(STATE_PROCESSED);
	List	   *types = NIL;
	ListCell   *lc;

	foreach(lc, predecessors)
	{
		const Predecessor *predecessor = lfirst(lc);

		if (text_equals(predecessor->state, processed))
			types = lappend(types, predecessor->message_type);
	}
	return types;
}

static void
set_predecessor(WaitingMessage *message, const List *predecessors,
				const text *missing)
{
	ListCell   *lc;

	set_text(message, COLUMN_WAITS_FOR, cstring_to_text(FOR_PREDECESSOR));
	set_text(message, COLUMN_PREDECESSOR, missing);
	set_text(message, COLUMN_PREDECESSOR_STATE, cstring_to_text(NOT_RECEIVED));
	set_text(message, COLUMN_PREDECESSOR_ERROR, NULL);
	foreach(lc, predecessors)
	{
		const Predecessor *predecessor = lfirst(lc);

		if (text_equals(predecessor->message_type, missing))
		{
			set_text(message, COLUMN_PREDECESSOR_STATE, predecessor->state);
			set_text(message, COLUMN_PREDECESSOR_ERROR, predecessor->error);
		}
	}
}

static void
put_row(ReturnSetInfo *result, const WaitingMessage *message)
{
	tuplestore_putvalues(result->setResult, result->setDesc,
						 unconstify(WaitingMessage *, message)->values,
						 unconstify(WaitingMessage *, message)->nulls);
}

/*
 * One row for each predecessor that the message misses, or one that says that
 * it misses none.
 */
static void
put_message(Oid inbox, ReturnSetInfo *result, WaitingMessage *message)
{
	List	   *predecessors = read_predecessors(inbox, message);
	List	   *missing = condition_missing(message->condition,
											processed_of(predecessors), NIL);
	ListCell   *lc;

	foreach(lc, missing)
	{
		set_predecessor(message, predecessors, lfirst(lc));
		put_row(result, message);
	}
	if (missing == NIL)
	{
		set_text(message, COLUMN_WAITS_FOR,
				 cstring_to_text(message->declared ? FOR_RELEASE : FOR_DECLARATION));
		put_row(result, message);
	}
}

PG_FUNCTION_INFO_V1(seqinbox_waiting);
Datum
seqinbox_waiting(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid			inbox = inbox_in_use();
	TimestampTz now = GetCurrentTimestamp();
	WaitingMessage *messages;
	uint64		rows;

	InitMaterializedSRF_compat(fcinfo);

	SPI_connect();
	rows = statement_run(inbox, &find_waiting, NULL, NULL);
	messages = palloc_extended(sizeof(WaitingMessage) * (rows + 1),
							   MCXT_ALLOC_HUGE);
	for (uint64 row = 0; row < rows; row++)
		read_waiting((int) row, now, &messages[row]);
	for (uint64 row = 0; row < rows; row++)
	{
		put_message(inbox, result, &messages[row]);
		CHECK_FOR_INTERRUPTS();
	}
	SPI_finish();

	return (Datum) 0;
}
