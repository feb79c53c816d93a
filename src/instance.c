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
#include "rows.h"
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

#define WANTED_ROWS(more) \
	" FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)" more ")" \
	" WITH ORDINALITY AS w"

/* each in the order of the rows, which others keep too */
static const Statement find_and_hold_rows = {
	"SELECT i.id, i.state" EQ "'" INSTANCE_CLOSED "', w.place"
	WANTED_ROWS("") " (name, context_id, place)"
	" JOIN $inbox.sequence_instance i"
	" ON i.name" EQ "w.name AND i.context_id" EQ "w.context_id"
	" ORDER BY w.place"
	" FOR KEY SHARE OF i",
	2, {TEXTARRAYOID, TEXTARRAYOID}
};

static const Statement create_rows = {
	"INSERT INTO $inbox.sequence_instance"
	" (name, context_id, state, created_at, retain_until,"
	" created_in_recording_mode)"
	" SELECT w.name, w.context_id, '" INSTANCE_OPEN "', w.created_at,"
	" w.retain_until, w.recording"
	WANTED_ROWS(", pg_catalog.unnest($3), pg_catalog.unnest($4),"
				" pg_catalog.unnest($5)")
	" (name, context_id, created_at, retain_until, recording, place)"
	" ORDER BY w.place"
	" ON CONFLICT (name, context_id) DO NOTHING"
	" RETURNING id, false, name, context_id",
	5, {TEXTARRAYOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID,
	BOOLARRAYOID}
};

static const Statement look_rows = {
	"SELECT " INSTANCE_WAITS("w.now") ", " INSTANCE_IS_COMPLETE ", w.place"
	WANTED_ROWS("") " (id, now, place)"
	" JOIN $inbox.sequence_instance i ON i.id" EQ "w.id",
	2, {INT8ARRAYOID, TIMESTAMPTZARRAYOID}
};

/*
 * Makes some due and closes the others.  One statement for both, since they
 * are locked in the order of the rows.
 */
static const Statement leave_rows = {
	"UPDATE $inbox.sequence_instance i SET"
	" release_due_at = CASE WHEN l.waits THEN l.now"
	" ELSE i.release_due_at END,"
	" state = CASE WHEN l.waits THEN i.state"
	" ELSE '" INSTANCE_CLOSED "' END,"
	" closed_at = CASE WHEN l.waits THEN i.closed_at ELSE l.now END"
	" FROM (SELECT w.waits, w.now, i.id"
	WANTED_ROWS(", pg_catalog.unnest($3)") " (id, now, waits, place)"
	" JOIN $inbox.sequence_instance i ON i.id" EQ "w.id"
	" WHERE CASE WHEN w.waits"
	" THEN (i.release_due_at IS NULL OR i.release_due_at" GT "w.now)"
	" ELSE i.state" EQ "'" INSTANCE_OPEN "' END"
	" ORDER BY w.place"
	" FOR NO KEY UPDATE OF i) AS l"
	" WHERE i.id" EQ "l.id",
	3, {INT8ARRAYOID, TIMESTAMPTZARRAYOID, BOOLARRAYOID}
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
read_instance(int row, Instance *instance)
{
	Datum		value;

	instance->id = statement_get_id(row);
	instance->closed = statement_get_from(row, 2, BOOLOID, &value) &&
		DatumGetBool(value);
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
instance_open(Oid inbox, Instance *instance)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz retain_until = moment_after(now, instance->retention_period);
	Datum		values[5];

	values[0] = PointerGetDatum(instance->sequence_name);
	values[1] = PointerGetDatum(instance->context_id);
	values[2] = TimestampTzGetDatum(now);
	values[3] = TimestampTzGetDatum(retain_until);
	values[4] = BoolGetDatum(instance->recording);

	while (statement_run(inbox, &find_and_hold, values, NULL) == 0 &&
		   statement_run(inbox, &create, values, NULL) == 0)
		CHECK_FOR_INTERRUPTS();
	read_instance(0, instance);
}

/*
 * Those of the instances that are there are filled in; returns how many are
 * left over, at the beginning of the array.
 */
static int
find_and_hold_each(Oid inbox, Instance **instances, int count)
{
	Rows		wanted;
	uint64		found;
	int			left = 0;

	rows_begin(&wanted, 2, count);
	for (int i = 0; i < count; i++)
	{
		rows_add(&wanted);
		rows_set_pointer(&wanted, 0, instances[i]->sequence_name);
		rows_set_pointer(&wanted, 1, instances[i]->context_id);
	}
	found = rows_run(inbox, &find_and_hold_rows, &wanted);
	for (uint64 row = 0; row < found; row++)
		read_instance((int) row, instances[rows_place((int) row, 3)]);
	for (int i = 0; i < count; i++)
	{
		if (instances[i]->id == 0)
			instances[left++] = instances[i];
	}
	return left;
}

/*
 * As find_and_hold_each().  The rows that were inserted come back in their
 * order, without those that were not.
 */
static int
create_each(Oid inbox, Instance **instances, int count)
{
	TimestampTz now = GetCurrentTimestamp();
	Rows		wanted;
	int			created;
	int			row = 0;

	rows_begin(&wanted, 5, count);
	for (int i = 0; i < count; i++)
	{
		TimestampTz retain_until = moment_after(now,
												instances[i]->retention_period);

		rows_add(&wanted);
		rows_set_pointer(&wanted, 0, instances[i]->sequence_name);
		rows_set_pointer(&wanted, 1, instances[i]->context_id);
		rows_set(&wanted, 2, TimestampTzGetDatum(now));
		rows_set(&wanted, 3, TimestampTzGetDatum(retain_until));
		rows_set(&wanted, 4, BoolGetDatum(instances[i]->recording));
	}
	created = (int) rows_run(inbox, &create_rows, &wanted);
	for (int i = 0; i < count; i++)
	{
		if (row < created &&
			rows_name_is(row, 3, instances[i]->sequence_name,
						 instances[i]->context_id))
			read_instance(row++, instances[i]);
		else
			instances[i - row] = instances[i];
	}
	return count - row;
}

/*
 * As instance_open(), for several, which differ and are sorted as those of
 * all other callers are.  The array is used up.
 */
void
instances_open(Oid inbox, Instance **instances, int count)
{
	if (count == 1)
	{
		instance_open(inbox, instances[0]);
		return;
	}
	while (count > 0)
	{
		CHECK_FOR_INTERRUPTS();
		count = find_and_hold_each(inbox, instances, count);
		if (count > 0)
			count = create_each(inbox, instances, count);
	}
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
	read_instance(0, &instance);
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
	*waiting = statement_get(1, BOOLOID, &value) && DatumGetBool(value);
	*complete = statement_get(2, BOOLOID, &value) && DatumGetBool(value);
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
	InstanceEnd end = {.id = id, .known = true};

	look_at(inbox, id, now, &end.waits, &end.complete);
	instance_leave(inbox, &end, now);
	return end.waits;
}

void
instance_leave(Oid inbox, const InstanceEnd *end, TimestampTz due_at)
{
	if (end->waits)
		instance_set_due(inbox, end->id, due_at);
	else if (end->complete)
		close_instance(inbox, end->id, GetCurrentTimestamp());
}

static void
look_at_each(Oid inbox, InstanceEnd **ends, int count, TimestampTz now)
{
	InstanceEnd **asked = palloc(sizeof(InstanceEnd *) * count);
	Rows		rows;
	uint64		found;
	Datum		value;

	rows_begin(&rows, 2, count);
	for (int i = 0; i < count; i++)
	{
		if (ends[i]->known)
			continue;
		asked[rows.count] = ends[i];
		rows_add(&rows);
		rows_set(&rows, 0, Int64GetDatum(ends[i]->id));
		rows_set(&rows, 1, TimestampTzGetDatum(now));
	}
	if (rows.count == 0)
		return;
	found = rows_run(inbox, &look_rows, &rows);
	for (uint64 row = 0; row < found; row++)
	{
		InstanceEnd *end = asked[rows_place((int) row, 3)];

		end->known = true;
		end->waits = statement_get_from((int) row, 1, BOOLOID, &value) &&
			DatumGetBool(value);
		end->complete = statement_get_from((int) row, 2, BOOLOID, &value) &&
			DatumGetBool(value);
	}
}

static void
leave_each(Oid inbox, InstanceEnd **ends, int count, TimestampTz now,
		   TimestampTz due_at)
{
	Rows		rows;

	rows_begin(&rows, 3, count);
	for (int i = 0; i < count; i++)
	{
		if (!ends[i]->waits && !ends[i]->complete)
			continue;
		rows_add(&rows);
		rows_set(&rows, 0, Int64GetDatum(ends[i]->id));
		rows_set(&rows, 1, TimestampTzGetDatum(ends[i]->waits ? due_at : now));
		rows_set(&rows, 2, BoolGetDatum(ends[i]->waits));
	}
	if (rows.count > 0)
		(void) rows_run(inbox, &leave_rows, &rows);
}

/*
 * As instance_finish(), for several, which differ and are sorted as those of
 * all other callers are.  Of one in which the caller itself has buffered a
 * message, it knows already that some wait.
 */
void
instances_finish(Oid inbox, InstanceEnd **ends, int count,
				 TimestampTz due_at)
{
	TimestampTz now = GetCurrentTimestamp();

	statements_read_latest(true);
	look_at_each(inbox, ends, count, now);
	leave_each(inbox, ends, count, now, due_at);
	statements_read_latest(false);
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
