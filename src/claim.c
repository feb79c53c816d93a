/*-------------------------------------------------------------------------
 *
 * claim.c
 *	  Takes and frees claims.
 *
 * The primary key of the claim table decides who wins.  INSERT ... ON
 * CONFLICT DO NOTHING waits for a transaction that has an undecided row of
 * the same key; when it was rolled back, the waiter's row goes in.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "args.h"
#include "claim.h"
#include "compat.h"
#include "instance.h"
#include "lock_wait.h"
#include "rows.h"
#include "sql.h"
#include "window.h"

/*
 * created_at is the moment of the claim, not of the transaction's start:
 * retention counts from it.
 */
#define INSERT_CLAIM \
	"INSERT INTO $inbox." CLAIM_TABLE \
	" (message_type, idempotence_id, created_at, sequence_instance_id) "
#define UNLESS_CLAIMED \
	" ON CONFLICT (message_type, idempotence_id) DO NOTHING"

static const Statement take = {
	INSERT_CLAIM
	"VALUES ($1, $2, $3, $4)"
	UNLESS_CLAIMED,
	4, {TEXTOID, TEXTOID, TIMESTAMPTZOID, INT8OID}
};

/* in the order of the rows, which others keep too */
static const Statement take_rows = {
	INSERT_CLAIM
	"SELECT r.message_type, r.idempotence_id, r.created_at, r.instance_id"
	" FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2),"
	" pg_catalog.unnest($3), pg_catalog.unnest($4))"
	" WITH ORDINALITY AS r"
	" (message_type, idempotence_id, created_at, instance_id, place)"
	" ORDER BY r.place"
	UNLESS_CLAIMED
	" RETURNING message_type, idempotence_id",
	4, {TEXTARRAYOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID, INT8ARRAYOID}
};

/* the foreign key would lock the instance too, but only after the claim */
static const Statement hold_and_take = {
	INSERT_CLAIM
	"SELECT $1, $2, $3, i.id FROM $inbox.sequence_instance i"
	" WHERE i.id" EQ "$4 FOR KEY SHARE"
	UNLESS_CLAIMED,
	4, {TEXTOID, TEXTOID, TIMESTAMPTZOID, INT8OID}
};

static const Statement take_in_window = {
	INSERT_CLAIM
	"SELECT $1, $2, $3, i.id FROM $inbox.sequence_instance i"
	" WHERE i.name" EQ "'" WINDOW_SEQUENCE "' AND i.context_id" EQ "$4"
	UNLESS_CLAIMED,
	4, {TEXTOID, TEXTOID, TIMESTAMPTZOID, TEXTOID}
};

static const Statement find = {
	"SELECT 1 FROM $inbox." CLAIM_TABLE " c"
	" WHERE c.message_type" EQ "$1 AND c.idempotence_id" EQ "$2",
	2, {TEXTOID, TEXTOID}
};

static const Statement delete = {
	"DELETE FROM $inbox." CLAIM_TABLE " c"
	" WHERE c.message_type" EQ "$1 AND c.idempotence_id" EQ "$2",
	2, {TEXTOID, TEXTOID}
};

/*
 * Type and idempotence ID are the first two arguments of every function that
 * takes them.
 */
void
claim_key_from_args(FunctionCallInfo fcinfo, ClaimKey *key)
{
	key->message_type = arg_name(fcinfo, 0, "message_type", MAX_TYPE_LENGTH);
	key->idempotence_id = arg_name(fcinfo, 1, "idempotence_id",
								   MAX_ID_LENGTH);
}

static void
fill_key(Datum *values, const ClaimKey *key)
{
	values[0] = PointerGetDatum(key->message_type);
	values[1] = PointerGetDatum(key->idempotence_id);
}

static bool
run_take(Oid inbox, const Statement *statement, const ClaimKey *key,
		 Datum instance)
{
	Datum		values[4];

	fill_key(values, key);
	values[2] = TimestampTzGetDatum(GetCurrentTimestamp());
	values[3] = instance;
	return statement_run(inbox, statement, values, NULL) > 0;
}

/*
 * True: this transaction has the claim.  False: somebody else committed it.
 * The caller holds the instance.
 */
bool
claim_take(Oid inbox, const ClaimKey *key, int64 instance_id)
{
	return run_take(inbox, &take, key, Int64GetDatum(instance_id));
}

/*
 * The rows that were inserted come back in their order, without those that
 * were not.
 */
static void
take_each(Oid inbox, ClaimWanted *claims, int count)
{
	TimestampTz now = GetCurrentTimestamp();
	Rows		rows;
	int			won;
	int			row = 0;

	rows_begin(&rows, 4, count);
	for (int i = 0; i < count; i++)
	{
		rows_add(&rows);
		rows_set_pointer(&rows, 0, claims[i].key->message_type);
		rows_set_pointer(&rows, 1, claims[i].key->idempotence_id);
		rows_set(&rows, 2, TimestampTzGetDatum(now));
		rows_set(&rows, 3, Int64GetDatum(claims[i].instance_id));
	}
	won = (int) rows_run(inbox, &take_rows, &rows);
	for (int i = 0; i < count; i++)
	{
		claims[i].won = row < won &&
			rows_name_is(row, 1, claims[i].key->message_type,
						 claims[i].key->idempotence_id);
		if (claims[i].won)
			row++;
	}
}

/*
 * As claim_take(), for several keys, which differ and are sorted as those of
 * all other callers are: so two of them cannot wait for each other.
 */
void
claims_take(Oid inbox, ClaimWanted *claims, int count)
{
	if (count == 1)
		claims->won = claim_take(inbox, claims->key, claims->instance_id);
	else if (count > 1)
		take_each(inbox, claims, count);
}

/*
 * Does a look show that the claim was committed?  Then nothing has to be
 * locked or written to know the duplicate.  Where the transaction keeps one
 * snapshot, which may not see that claim, a statement has to find out.
 */
bool
claim_is_taken(Oid inbox, const ClaimKey *key)
{
	return !IsolationUsesXactSnapshot() &&
		claim_look(inbox, key) == CLAIM_LOOKS_TAKEN;
}

/*
 * As claim_take(), but holds the instance first.
 */
bool
claim_hold_and_take(Oid inbox, const ClaimKey *key, int64 instance_id)
{
	if (claim_is_taken(inbox, key))
		return false;
	if (run_take(inbox, &hold_and_take, key, Int64GetDatum(instance_id)))
		return true;
	instance_require(inbox, instance_id);
	return false;
}

static bool
claim_exists(Oid inbox, const ClaimKey *key)
{
	Datum		values[2];

	fill_key(values, key);
	return statement_run(inbox, &find, values, NULL) > 0;
}

/*
 * A claim without sequencing.  Looking up the window inside the statement
 * spares a round, and an ID that was remembered could be gone.
 *
 * No row can mean a duplicate, or that nobody has made the window.  Either may
 * have changed when it is looked at: then the statement is run again.
 */
bool
claim_take_in_window(Oid inbox, const ClaimKey *key)
{
	text	   *context = window_context();

	while (!run_take(inbox, &take_in_window, key, PointerGetDatum(context)))
	{
		if (claim_exists(inbox, key))
			return false;
		if (window_find(inbox, context) == 0)
			return claim_take(inbox, key, window_private(inbox));
		CHECK_FOR_INTERRUPTS();
	}
	return true;
}

typedef struct TakeAttempt
{
	Oid			inbox;
	const ClaimKey *key;
	int64		instance_id;
	bool		won;
} TakeAttempt;

static void
attempt_take(void *arg)
{
	TakeAttempt *attempt = arg;

	attempt->won = claim_take(attempt->inbox, attempt->key,
							  attempt->instance_id);
}

/*
 * The shortest lock_timeout is a millisecond; only a transaction that came
 * between the look and the insert can make it run out.
 */
static ClaimResult
take_without_waiting(Oid inbox, const ClaimKey *key, int64 instance_id)
{
	TakeAttempt attempt = {inbox, key, instance_id, false};

	if (!lock_wait_at_most("1ms", attempt_take, &attempt))
		return CLAIM_IN_FLIGHT;
	return attempt.won ? CLAIM_WON : CLAIM_DUPLICATE;
}

/*
 * As claim_take(), but never waits for another transaction.
 *
 * Looking first spares the subtransaction in all cases but that of a free
 * claim.  The insert decides: what can come between is another claim, which
 * the next look sees, or a wait for something that has nothing to do with
 * claims, such as the extension of the table, which the next try may find
 * done.
 */
ClaimResult
claim_try(Oid inbox, const ClaimKey *key, int64 instance_id)
{
	for (;;)
	{
		ClaimLook	look = claim_look(inbox, key);
		ClaimResult result;

		if (look == CLAIM_LOOKS_UNDECIDED)
			return CLAIM_IN_FLIGHT;

		/*
		 * The look sees what the transaction's snapshot may not.  Then the
		 * insert has to raise the serialization failure.
		 */
		if (look == CLAIM_LOOKS_TAKEN && !IsolationUsesXactSnapshot())
			return CLAIM_DUPLICATE;

		if (!instance_try_hold(inbox, instance_id))
			return CLAIM_IN_FLIGHT;

		result = take_without_waiting(inbox, key, instance_id);
		if (result != CLAIM_IN_FLIGHT || look == CLAIM_LOOKS_UNKNOWN)
			return result;
		CHECK_FOR_INTERRUPTS();
	}
}

ClaimResult
claim_try_in_window(Oid inbox, const ClaimKey *key)
{
	int64		window = window_find(inbox, window_context());

	if (window == 0)
		window = window_private(inbox);
	return claim_try(inbox, key, window);
}

/*
 * Frees a claim.  False when there was none.
 */
bool
claim_delete(Oid inbox, const ClaimKey *key)
{
	Datum		values[2];
	bool		deleted;

	fill_key(values, key);
	statements_read_latest(true);
	deleted = statement_run(inbox, &delete, values, NULL) > 0;
	statements_read_latest(false);
	return deleted;
}
