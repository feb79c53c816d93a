/*-------------------------------------------------------------------------
 *
 * housekeeping.c
 *	  Closes and removes instances whose time has come.
 *
 * The work is done in turns, each for a transaction of its own.  A turn takes
 * only instances that nobody holds: every delivery holds its instance, so it
 * is never in the way of one, and never takes an instance away from one.  A
 * run walks once along retain_until in each phase; what somebody holds now is
 * left to the next run.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "args.h"
#include "arrays.h"
#include "dead_letter.h"
#include "housekeeping.h"
#include "instance.h"
#include "message.h"
#include "sql.h"
#include "window.h"

/* how many claims one turn removes for each instance of its batch */
#define CLAIMS_PER_INSTANCE 10

#define REASON "sequence instance was removed"

/* the walk; $1 is now, $2 and $3 the last one seen, $4 the batch size */
#define SELECT_NEXT \
	"SELECT i.id, i.retain_until FROM $inbox.sequence_instance i" \
	" WHERE i.retain_until" LE "$1 AND i.retain_until" GE "$2" \
	" AND (i.retain_until" GT "$2 OR i.id" GT "$3)"
#define BATCH \
	" ORDER BY i.retain_until, i.id LIMIT $4 FOR UPDATE SKIP LOCKED"
#define WALK_TYPES TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID, INT8OID

/* an operator may have moved retain_until, also beyond remove_after */
static const Statement lock_to_settle = {
	SELECT_NEXT
	" AND i.state" EQ "'" INSTANCE_OPEN "'"
	" AND (i.remove_after IS NULL OR i.remove_after" LT "i.retain_until)"
	BATCH,
	4, {WALK_TYPES}
};

static const Statement lock_to_remove = {
	SELECT_NEXT
	" AND (i.state" EQ "'" INSTANCE_CLOSED "' OR (i.remove_after" LE "$1"
	" AND i.remove_after" GE "i.retain_until))"
	BATCH,
	4, {WALK_TYPES}
};

static const Statement close_complete = {
	"UPDATE $inbox.sequence_instance i"
	" SET state = '" INSTANCE_CLOSED "', closed_at = $2"
	" WHERE i.id" EQ "ANY ($1) AND NOT " INSTANCE_WAITS("$2")
	" AND " INSTANCE_IS_COMPLETE,
	2, {INT8ARRAYOID, TIMESTAMPTZOID}
};

static const Statement mark = {
	"UPDATE $inbox.sequence_instance i"
	" SET remove_after = i.retain_until" PLUS "$2"
	" WHERE i.id" EQ "ANY ($1) AND i.state" EQ "'" INSTANCE_OPEN "'",
	2, {INT8ARRAYOID, INTERVALOID}
};

/*
 * Of the instances that are locked now, those whose newest claim is as old as
 * the instance's own retention.  A claim that was committed just before the
 * lock was taken is seen, since this is a statement of its own.
 */
static const Statement find_outlived = {
	"SELECT pg_catalog.array_agg(i.id ORDER BY i.id)"
	" FROM $inbox.sequence_instance i"
	" WHERE i.id" EQ "ANY ($1)"
	" AND NOT EXISTS (SELECT 1 FROM $inbox." CLAIM_TABLE " c"
	" WHERE c.sequence_instance_id" EQ "i.id"
	" AND CASE WHEN pg_catalog.isfinite(c.created_at)"
	" AND pg_catalog.isfinite(i.retain_until)"
	" AND pg_catalog.isfinite(i.created_at) THEN"
	" ($2" MINUS "c.created_at)" LT "(i.retain_until" MINUS "i.created_at)"
	" ELSE i.retain_until" GT "$2 END)",
	2, {INT8ARRAYOID, TIMESTAMPTZOID}
};

static const Statement delete_claims = {
	"DELETE FROM $inbox." CLAIM_TABLE " c"
	" WHERE c.ctid" EQ "ANY (ARRAY(SELECT o.ctid FROM $inbox." CLAIM_TABLE " o"
	" WHERE o.sequence_instance_id" EQ "ANY ($1) LIMIT $2))",
	2, {INT8ARRAYOID, INT8OID}
};

static const Statement delete_headers = {
	"DELETE FROM $inbox.message_header h USING $inbox.buffered_message b"
	" WHERE h.buffered_message_id" EQ "b.id"
	" AND b.sequence_instance_id" EQ "ANY ($1)",
	1, {INT8ARRAYOID}
};

static const Statement delete_buffered = {
	"DELETE FROM $inbox.buffered_message b"
	" WHERE b.sequence_instance_id" EQ "ANY ($1)",
	1, {INT8ARRAYOID}
};

static const Statement delete_messages = {
	"DELETE FROM $inbox.sequenced_message m"
	" WHERE m.sequence_instance_id" EQ "ANY ($1)",
	1, {INT8ARRAYOID}
};

static const Statement delete_instances = {
	"DELETE FROM $inbox.sequence_instance i WHERE i.id" EQ "ANY ($1)",
	1, {INT8ARRAYOID}
};

void
housekeeping_begin(HousekeepingRun *run, const HousekeepingOptions *options)
{
	memset(run, 0, sizeof(*run));
	run->options = *options;
	run->phase = PHASE_WINDOWS;
	TIMESTAMP_NOBEGIN(run->seen_retain_until);
}

static void
next_phase(HousekeepingRun *run)
{
	run->phase++;
	TIMESTAMP_NOBEGIN(run->seen_retain_until);
	run->seen_id = 0;
}

/*
 * Locks the next batch of the walk and returns the IDs, or NULL at its end.
 */
static ArrayType *
lock_batch(Oid inbox, HousekeepingRun *run, const Statement *statement,
		   TimestampTz now)
{
	Datum		values[4];
	Datum	   *ids;
	Datum		value;
	uint64		rows;

	values[0] = TimestampTzGetDatum(now);
	values[1] = TimestampTzGetDatum(run->seen_retain_until);
	values[2] = Int64GetDatum(run->seen_id);
	values[3] = Int64GetDatum(run->options.batch_size);
	rows = statement_run(inbox, statement, values, NULL);
	if (rows == 0)
		return NULL;

	ids = palloc(sizeof(Datum) * rows);
	for (uint64 row = 0; row < rows; row++)
	{
		(void) statement_get_from((int) row, 1, INT8OID, &value);
		run->seen_id = DatumGetInt64(value);
		ids[row] = Int64GetDatum(run->seen_id);
		(void) statement_get_from((int) row, 2, TIMESTAMPTZOID, &value);
		run->seen_retain_until = DatumGetTimestampTz(value);
	}
	return array_of(INT8OID, ids, NULL, (int) rows);
}

static void
settle(Oid inbox, HousekeepingRun *run)
{
	TimestampTz now = GetCurrentTimestamp();
	ArrayType  *ids = lock_batch(inbox, run, &lock_to_settle, now);
	Datum		values[2];

	if (ids == NULL)
	{
		next_phase(run);
		return;
	}
	values[0] = PointerGetDatum(ids);
	values[1] = TimestampTzGetDatum(now);
	run->report.closed += statement_run(inbox, &close_complete, values, NULL);
	values[1] = IntervalPGetDatum(run->options.removal_delay);
	run->report.marked += statement_run(inbox, &mark, values, NULL);
}

/*
 * Removes claims of instances that may go, as many as one turn should.  True
 * when none is left.
 *
 * That they go before their instance is no harm: each of them has answered
 * duplicates for as long as the retention asks.
 */
static bool
remove_claims(Oid inbox, const HousekeepingRun *run, Datum ids)
{
	int64		limit = (int64) run->options.batch_size * CLAIMS_PER_INSTANCE;
	Datum		values[2];

	values[0] = ids;
	values[1] = Int64GetDatum(limit);
	return statement_run(inbox, &delete_claims, values, NULL) < (uint64) limit;
}

static void
remove_instances(Oid inbox, HousekeepingRun *run, Datum ids)
{
	Datum		values[1] = {ids};

	run->report.buried += dead_letters_bury_instances(inbox, ids, REASON);
	(void) statement_run(inbox, &delete_headers, values, NULL);
	(void) statement_run(inbox, &delete_buffered, values, NULL);
	(void) statement_run(inbox, &delete_messages, values, NULL);
	run->report.removed += statement_run(inbox, &delete_instances,
										 values, NULL);
}

static void
remove_batch(Oid inbox, HousekeepingRun *run)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz seen_retain_until = run->seen_retain_until;
	int64		seen_id = run->seen_id;
	ArrayType  *ids = lock_batch(inbox, run, &lock_to_remove, now);
	Datum		values[2];
	Datum		outlived;

	if (ids == NULL)
	{
		next_phase(run);
		return;
	}
	values[0] = PointerGetDatum(ids);
	values[1] = TimestampTzGetDatum(now);
	if (statement_run(inbox, &find_outlived, values, NULL) == 0 ||
		!statement_get(1, INT8ARRAYOID, &outlived))
		return;

	outlived = PointerGetDatum(DatumGetArrayTypePCopy(outlived));
	if (remove_claims(inbox, run, outlived))
		remove_instances(inbox, run, outlived);
	else
	{
		/* the next turn takes the same instances, with fewer claims */
		run->seen_retain_until = seen_retain_until;
		run->seen_id = seen_id;
	}
}

static void
purge(Oid inbox, HousekeepingRun *run)
{
	const Interval *keep = run->options.keep_dead_letters;
	int64		purged = 0;

	if (keep != NULL)
		purged = dead_letters_purge(inbox,
									moment_before(GetCurrentTimestamp(), keep),
									run->options.batch_size);
	run->report.purged += purged;
	if (purged < run->options.batch_size)
		next_phase(run);
}

/*
 * Does the work of one transaction.  False when the run is over.
 */
bool
housekeeping_turn(Oid inbox, HousekeepingRun *run)
{
	switch (run->phase)
	{
		case PHASE_WINDOWS:
			windows_make_ahead(inbox);
			next_phase(run);
			break;
		case PHASE_SETTLE:
			settle(inbox, run);
			break;
		case PHASE_REMOVE:
			remove_batch(inbox, run);
			break;
		case PHASE_PURGE:
			purge(inbox, run);
			break;
		case PHASE_DONE:
			break;
	}
	return run->phase != PHASE_DONE;
}

/*
 * Leaves a line in the server's log, since a scheduler may keep no results.
 */
void
housekeeping_log(const char *inbox_name, const HousekeepingRun *run)
{
	const HousekeepingReport *report = &run->report;

	if (report->closed + report->marked + report->removed + report->purged == 0)
		return;
	ereport(LOG,
			(errhidestmt(true),
			 errmsg("housekeeping of inbox \"%s\": %lld instances closed, %lld marked, %lld removed; %lld dead letters made, %lld purged",
					inbox_name,
					(long long) report->closed, (long long) report->marked,
					(long long) report->removed, (long long) report->buried,
					(long long) report->purged)));
}
