/*-------------------------------------------------------------------------
 *
 * instance.c
 *	  Finds, creates and holds sequence instances.
 *
 * An instance is the first thing that a transaction locks; claims and
 * messages come after it.  Deliveries hold it FOR KEY SHARE, so that they do
 * not wait for each other; whoever must be alone takes it FOR UPDATE.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "args.h"
#include "instance.h"
#include "message.h"
#include "sql.h"

static const Statement find_and_hold = {
	"SELECT i.id, i.state" EQ "'" INSTANCE_CLOSED "'"
	" FROM $inbox.sequence_instance i"
	" WHERE i.name" EQ "$1 AND i.context_id" EQ "$2"
	" FOR KEY SHARE",
	2, {TEXTOID, TEXTOID}
};

static const Statement create = {
	"INSERT INTO $inbox.sequence_instance"
	" (name, context_id, state, created_at, retain_until,"
	" created_in_recording_mode)"
	" VALUES ($1, $2, '" INSTANCE_OPEN "', $3, $4, $5)"
	" ON CONFLICT (name, context_id) DO NOTHING"
	" RETURNING id, false",
	5, {TEXTOID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID, BOOLOID}
};

static const Statement hold = {
	"SELECT i.id FROM $inbox.sequence_instance i"
	" WHERE i.id" EQ "$1"
	" FOR KEY SHARE",
	1, {INT8OID}
};

static const Statement hold_unless_locked = {
	"SELECT i.id FROM $inbox.sequence_instance i"
	" WHERE i.id" EQ "$1"
	" FOR KEY SHARE SKIP LOCKED",
	1, {INT8OID}
};

static const Statement find = {
	"SELECT i.id, i.state" EQ "'" INSTANCE_CLOSED "'"
	" FROM $inbox.sequence_instance i"
	" WHERE i.id" EQ "$1",
	1, {INT8OID}
};

/* an earlier moment stands, so that it is written only once per drain */
static const Statement set_due = {
	"UPDATE $inbox.sequence_instance i SET release_due_at = $2"
	" WHERE i.id" EQ "$1"
	" AND (i.release_due_at IS NULL OR i.release_due_at" GT "$2)",
	2, {INT8OID, TIMESTAMPTZOID}
};

static const Statement look = {
	"SELECT " INSTANCE_WAITS("$2") ", " INSTANCE_IS_COMPLETE
	" FROM $inbox.sequence_instance i"
	" WHERE i.id" EQ "$1",
	2, {INT8OID, TIMESTAMPTZOID}
};

static const Statement close_open = {
	"UPDATE $inbox.sequence_instance i"
	" SET state = '" INSTANCE_CLOSED "', closed_at = $2"
	" WHERE i.id" EQ "$1 AND i.state" EQ "'" INSTANCE_OPEN "'",
	2, {INT8OID, TIMESTAMPTZOID}
};

void
instance_unknown(int64 id)
{
	ereport(ERROR,
			(errcode(ERRCODE_NO_DATA_FOUND),
			 errmsg("sequence instance %lld does not exist",
					(long long) id)));
}

/*
 * Reads what find_and_hold, create and find return.
 */
static void
read_instance(Instance *instance)
{
	Datum		value;

	if (!statement_get(1, &value))
		elog(ERROR, "sequence instance has no id");
	instance->id = DatumGetInt64(value);
	instance->closed = statement_get(2, &value) && DatumGetBool(value);
}

/*
 * The instance of a context, created when there is none, held FOR KEY SHARE.
 *
 * Each turn of the loop sees what others have committed since the one before:
 * a row that stood in the way of the INSERT is found by the next SELECT, and
 * one that was removed before the SELECT could lock it no longer stands in
 * the way.  Under REPEATABLE READ such a conflict is a serialization failure,
 * raised by the statement itself, so the loop never spins.
 */
void
instance_open(Oid inbox, const text *sequence_name, const text *context_id,
			  const Interval *retention_period, bool recording,
			  Instance *instance)
{
	TimestampTz now = GetCurrentTimestamp();
	Datum		values[5];

	values[0] = PointerGetDatum(sequence_name);
	values[1] = PointerGetDatum(context_id);
	values[2] = TimestampTzGetDatum(now);
	values[3] = TimestampTzGetDatum(moment_after(now, retention_period));
	values[4] = BoolGetDatum(recording);

	while (statement_run(inbox, &find_and_hold, values, NULL) == 0 &&
		   statement_run(inbox, &create, values, NULL) == 0)
		CHECK_FOR_INTERRUPTS();
	read_instance(instance);
}

void
instance_hold(Oid inbox, int64 id)
{
	Datum		values[1] = {Int64GetDatum(id)};

	if (statement_run(inbox, &hold, values, NULL) == 0)
		instance_unknown(id);
}

/*
 * As instance_hold(), but false instead of waiting for whoever holds the
 * instance FOR UPDATE.
 */
bool
instance_try_hold(Oid inbox, int64 id)
{
	Datum		values[1] = {Int64GetDatum(id)};

	if (statement_run(inbox, &hold_unless_locked, values, NULL) > 0)
		return true;
	instance_require(inbox, id);
	return false;
}

/*
 * An error when there is no such instance.
 */
void
instance_require(Oid inbox, int64 id)
{
	(void) instance_is_closed(inbox, id);
}

void
instance_set_due(Oid inbox, int64 id, TimestampTz due_at)
{
	Datum		values[2] = {Int64GetDatum(id), TimestampTzGetDatum(due_at)};

	statements_read_latest(true);
	(void) statement_run(inbox, &set_due, values, NULL);
	statements_read_latest(false);
}

bool
instance_is_closed(Oid inbox, int64 id)
{
	Datum		values[1] = {Int64GetDatum(id)};
	Instance	instance;

	if (statement_run(inbox, &find, values, NULL) == 0)
		instance_unknown(id);
	read_instance(&instance);
	return instance.closed;
}

/*
 * A message that is being buffered by a transaction still in flight is not
 * seen here; that transaction makes the instance due itself.
 */
static void
look_at(Oid inbox, int64 id, TimestampTz now, bool *waiting, bool *complete)
{
	Datum		values[2] = {Int64GetDatum(id), TimestampTzGetDatum(now)};
	Datum		value;

	statements_read_latest(true);
	if (statement_run(inbox, &look, values, NULL) == 0)
		instance_unknown(id);
	statements_read_latest(false);
	*waiting = statement_get(1, &value) && DatumGetBool(value);
	*complete = statement_get(2, &value) && DatumGetBool(value);
}

static void
close_instance(Oid inbox, int64 id, TimestampTz now)
{
	Datum		values[2] = {Int64GetDatum(id), TimestampTzGetDatum(now)};

	(void) statement_run(inbox, &close_open, values, NULL);
}

/*
 * Leaves an instance as its messages require: due, when some wait; closed,
 * when none does and it is complete.  Returns whether some wait.
 */
bool
instance_finish(Oid inbox, int64 id)
{
	TimestampTz now = GetCurrentTimestamp();
	bool		waiting;
	bool		complete;

	look_at(inbox, id, now, &waiting, &complete);
	if (waiting)
		instance_set_due(inbox, id, now);
	else if (complete)
		close_instance(inbox, id, now);
	return waiting;
}

/*
 * For whoever has drained the instance, and leaves what still waits to those
 * that it waits for.
 */
void
instance_close_if_complete(Oid inbox, int64 id)
{
	TimestampTz now = GetCurrentTimestamp();
	bool		waiting;
	bool		complete;

	look_at(inbox, id, now, &waiting, &complete);
	if (complete && !waiting)
		close_instance(inbox, id, now);
}
