/*-------------------------------------------------------------------------
 *
 * drain.c
 *	  Hands out the messages of an instance one by one.
 *
 * Whoever drains an instance holds it FOR UPDATE.  Every delivery holds it
 * FOR KEY SHARE until its transaction ends, so the lock waits for all
 * deliveries in flight, and what is read afterwards includes their result.
 * A delivery that begins meanwhile waits, and then sees what was done here.
 * This is why release_due_at may be cleared here, and only here.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "arrays.h"
#include "claim.h"
#include "dead_letter.h"
#include "declaration.h"
#include "drain.h"
#include "instance.h"
#include "payload.h"
#include "release.h"
#include "sql.h"
#include "texts.h"

/* how long to leave alone what another transaction is deciding on */
#define POSTPONE_MS 1000

#define SELECT_INSTANCE \
	"SELECT i.id, i.name, i.context_id, i.pending_action," \
	" i.state" EQ "'" INSTANCE_CLOSED "'" \
	" OR EXISTS (SELECT 1 FROM $inbox.sequence_declaration s" \
	" WHERE s.name" EQ "i.name" AS_C \
	" AND s.sequencing_start_timestamp" GT "pg_catalog.clock_timestamp())" \
	" FROM $inbox.sequence_instance i "

static const Statement lock = {
	SELECT_INSTANCE
	"WHERE i.id" EQ "$1 FOR UPDATE",
	1, {INT8OID}
};

static const Statement lock_due = {
	SELECT_INSTANCE
	"WHERE i.release_due_at" LE "$1"
	" ORDER BY i.release_due_at LIMIT 1 FOR UPDATE SKIP LOCKED",
	1, {TIMESTAMPTZOID}
};

/* actions that another program has written make no instance due */
static const Statement lock_with_action = {
	SELECT_INSTANCE
	"WHERE i.pending_action" EQ "'" ACTION_CONSUME_ALL "'"
	" OR i.pending_action" EQ "'" ACTION_CLOSE "'"
	" LIMIT 1 FOR UPDATE SKIP LOCKED",
	0, {0}
};

static const Statement lock_with_message_action = {
	SELECT_INSTANCE
	"WHERE i.id" EQ "ANY (ARRAY("
	"SELECT m.sequence_instance_id FROM $inbox.sequenced_message m"
	" WHERE (m.pending_action" EQ "'" ACTION_CONSUME "'"
	" AND " MESSAGE_TO_RELEASE("$1") ")"
	" OR (m.pending_action" EQ "'" ACTION_EXPIRE "'"
	" AND m.state" NE "'" STATE_PROCESSED "')))"
	" LIMIT 1 FOR UPDATE SKIP LOCKED",
	1, {TIMESTAMPTZOID}
};

static const Statement find_to_expire = {
	"SELECT m.id FROM $inbox.sequenced_message m"
	" WHERE m.sequence_instance_id" EQ "$1"
	" AND m.pending_action" EQ "'" ACTION_EXPIRE "'"
	" AND m.state" NE "'" STATE_PROCESSED "'",
	1, {INT8OID}
};

/*
 * The first message of each releasable type, by one index probe each, and of
 * those that an operator wants released regardless of their condition.
 */
static const Statement find_first = {
	"SELECT f.id, f.state FROM ("
	"(SELECT m.id, m.state, m.created_at"
	" FROM pg_catalog.unnest($2) AS t (message_type)"
	" CROSS JOIN LATERAL (SELECT m.id, m.state, m.created_at"
	" FROM $inbox.sequenced_message m"
	" WHERE m.sequence_instance_id" EQ "$1"
	" AND m.message_type" EQ "t.message_type"
	" AND " MESSAGE_TO_RELEASE("$3")
	" ORDER BY m.created_at, m.id LIMIT 1) AS m)"
	" UNION ALL "
	"(SELECT m.id, m.state, m.created_at FROM $inbox.sequenced_message m"
	" WHERE m.sequence_instance_id" EQ "$1"
	" AND m.pending_action" EQ "'" ACTION_CONSUME "'"
	" AND " MESSAGE_TO_RELEASE("$3") ")"
	") AS f ORDER BY f.created_at, f.id LIMIT 1",
	3, {INT8OID, TEXTARRAYOID, TIMESTAMPTZOID}
};

static const Statement find_first_waiting = {
	"SELECT m.id, m.state FROM $inbox.sequenced_message m"
	" WHERE m.sequence_instance_id" EQ "$1"
	" AND m.state" EQ "'" STATE_WAITING "'"
	" ORDER BY m.created_at, m.id LIMIT 1",
	1, {INT8OID}
};

static const Statement take = {
	"UPDATE $inbox.sequenced_message m SET state = '" STATE_PROCESSED "',"
	" state_changed_at = $2, pending_action = NULL, retry_at = NULL"
	" WHERE m.id" EQ "$1 AND m.state" NE "'" STATE_PROCESSED "'"
	" RETURNING m.message_type, m.idempotence_id,"
	" CASE WHEN m.topic" NE "'' THEN m.topic END,"
	" CASE WHEN m.cluster_name" NE "'' THEN m.cluster_name END,"
	" m.sequenced_message_id, m.attempts, m.created_at,"
	" m.trace_id_high, m.trace_id, m.span_id, m.sampled",
	2, {INT8OID, TIMESTAMPTZOID}
};

/*
 * Nothing is to be released now; a retry that comes due later is remembered.
 */
static const Statement clear_due = {
	"UPDATE $inbox.sequence_instance i SET release_due_at ="
	" (SELECT pg_catalog.min(m.retry_at) FROM $inbox.sequenced_message m"
	" WHERE m.sequence_instance_id" EQ "i.id"
	" AND m.state" EQ "'" STATE_FAILED "' AND m.retry_at" GT "$2),"
	" pending_action = CASE WHEN i.pending_action" NE "'" ACTION_CONSUME_ALL "'"
	" THEN i.pending_action END"
	" WHERE i.id" EQ "$1",
	2, {INT8OID, TIMESTAMPTZOID}
};

static const Statement close_now = {
	"UPDATE $inbox.sequence_instance i SET state = '" INSTANCE_CLOSED "',"
	" closed_at = COALESCE(i.closed_at, $2),"
	" pending_action = NULL, release_due_at = NULL"
	" WHERE i.id" EQ "$1",
	2, {INT8OID, TIMESTAMPTZOID}
};

static const Statement set_consume_all = {
	"UPDATE $inbox.sequence_instance i"
	" SET pending_action = '" ACTION_CONSUME_ALL "', release_due_at = $2"
	" WHERE i.id" EQ "$1",
	2, {INT8OID, TIMESTAMPTZOID}
};

static void
fill_id_and_now(Datum *values, int64 id)
{
	values[0] = Int64GetDatum(id);
	values[1] = TimestampTzGetDatum(GetCurrentTimestamp());
}

static void
read_instance(DrainedInstance *instance)
{
	Datum		value;

	memset(instance, 0, sizeof(*instance));
	if (statement_get(1, INT8OID, &value))
		instance->id = DatumGetInt64(value);
	instance->name = statement_get_text(2);
	instance->context_id = statement_get_text(3);
	instance->unconditional = statement_get(5, BOOLOID, &value) &&
		DatumGetBool(value);
	if (statement_get(4, TEXTOID, &value))
	{
		char	   *action = TextDatumGetCString(value);

		instance->consume_all = strcmp(action, ACTION_CONSUME_ALL) == 0;
		instance->close = strcmp(action, ACTION_CLOSE) == 0;
	}
}

/*
 * Locks an instance, waiting for all deliveries in flight.
 */
void
drain_lock(Oid inbox, int64 instance_id, DrainedInstance *instance)
{
	Datum		values[1] = {Int64GetDatum(instance_id)};

	if (statement_run(inbox, &lock, values, NULL) == 0)
		instance_unknown(instance_id);
	read_instance(instance);
}

/*
 * Locks an instance whose drain is due, or on which an action is pending.
 * Those that another worker or a delivery holds are left to them.
 */
bool
drain_lock_any(Oid inbox, DrainedInstance *instance)
{
	Datum		values[1] = {TimestampTzGetDatum(GetCurrentTimestamp())};

	if (statement_run(inbox, &lock_due, values, NULL) == 0 &&
		statement_run(inbox, &lock_with_action, NULL, NULL) == 0 &&
		statement_run(inbox, &lock_with_message_action, values, NULL) == 0)
		return false;
	read_instance(instance);
	return true;
}

static void
expire_marked(Oid inbox, int64 instance_id)
{
	Datum		values[1] = {Int64GetDatum(instance_id)};

	for (;;)
	{
		Datum		id;

		if (statement_run(inbox, &find_to_expire, values, NULL) == 0 ||
			!statement_get(1, INT8OID, &id))
			return;
		if (!message_expire(inbox, DatumGetInt64(id)))
			return;
	}
}

static bool
find_next(Oid inbox, const DrainedInstance *instance, TimestampTz now,
		  int64 *id, bool *failed)
{
	Datum		values[3];
	Datum		value;
	List	   *types;

	values[0] = Int64GetDatum(instance->id);
	if (instance->consume_all &&
		statement_run(inbox, &find_first_waiting, values, NULL) > 0)
	{
		*failed = false;
		(void) statement_get(1, INT8OID, &value);
		*id = DatumGetInt64(value);
		return true;
	}

	types = releasable_types(inbox, instance->id, instance->name,
							 instance->unconditional, now);
	values[1] = PointerGetDatum(text_list_array(types));
	values[2] = TimestampTzGetDatum(now);
	if (statement_run(inbox, &find_first, values, NULL) == 0)
		return false;
	(void) statement_get(2, TEXTOID, &value);
	*failed = strcmp(TextDatumGetCString(value), STATE_FAILED) == 0;
	(void) statement_get(1, INT8OID, &value);
	*id = DatumGetInt64(value);
	return true;
}

/*
 * A failed message has no claim.  Before it is handed out again it needs one,
 * against a resend, and a payload.  Waiting for the claim could be a deadlock
 * with whoever waits for the instance.  A claim that is there and committed,
 * while its record says FAILED, belongs to nobody any more.  Where history
 * left another record that says that the message was processed, or is
 * waiting, this one is not tried again.
 */
static bool
may_retry(Oid inbox, const DrainedInstance *instance, int64 id)
{
	Record		record;
	Record		counting;
	ClaimKey	key;

	if (!payload_is_buffered(inbox, id))
	{
		(void) message_set_retry(inbox, id, DT_NOEND);
		return false;
	}
	message_get(inbox, id, &record, &key);
	if (message_lookup(inbox, &key, &counting) && counting.id != id &&
		!state_is(counting.state, STATE_FAILED))
	{
		(void) message_set_retry(inbox, id, DT_NOEND);
		return false;
	}
	if (claim_try(inbox, &key, instance->id) == CLAIM_IN_FLIGHT)
	{
		TimestampTz later = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
														POSTPONE_MS);

		(void) message_set_retry(inbox, id, later);
		return false;
	}
	return true;
}

static bool
take_message(Oid inbox, int64 id, ReleasedMessage *released)
{
	Message    *message = &released->message;
	Datum		values[2];
	Datum		value;

	fill_id_and_now(values, id);
	if (statement_run(inbox, &take, values, NULL) == 0)
		return false;

	memset(released, 0, sizeof(*released));
	released->id = id;
	message->key.message_type = statement_get_text(1);
	message->key.idempotence_id = statement_get_text(2);
	message->topic = statement_get_text(3);
	message->cluster_name = statement_get_text(4);
	if (statement_get(5, UUIDOID, &value))
	{
		message->uuid = palloc(sizeof(pg_uuid_t));
		*message->uuid = *DatumGetUUIDP(value);
	}
	if (statement_get(6, INT4OID, &value))
		released->attempts = DatumGetInt32(value);
	if (statement_get(7, TIMESTAMPTZOID, &value))
		released->received_at = DatumGetTimestampTz(value);
	message_read_trace(8, &message->trace);

	payload_fetch(inbox, id, &message->payload);
	payload_drop(inbox, id);
	return true;
}

/*
 * Whether the transaction's snapshot hides a message that is to be released.
 */
static bool
misses_any(Oid inbox, const DrainedInstance *instance, TimestampTz now)
{
	int64		id;
	bool		failed;
	bool		found;

	if (!IsolationUsesXactSnapshot())
		return false;
	statements_read_latest(true);
	found = find_next(inbox, instance, now, &id, &failed);
	statements_read_latest(false);
	return found;
}

static void
clear_release_due(Oid inbox, int64 instance_id, TimestampTz now)
{
	Datum		values[2];

	values[0] = Int64GetDatum(instance_id);
	values[1] = TimestampTzGetDatum(now);
	statements_read_latest(true);
	(void) statement_run(inbox, &clear_due, values, NULL);
	statements_read_latest(false);
}

static bool
release_first(Oid inbox, const DrainedInstance *instance, TimestampTz now,
			  ReleasedMessage *released)
{
	int64		id;
	bool		failed;

	while (find_next(inbox, instance, now, &id, &failed))
	{
		if (failed && !may_retry(inbox, instance, id))
			continue;
		if (take_message(inbox, id, released))
		{
			/* what it lets go needs it, where only an action was pending */
			instance_set_due(inbox, instance->id, now);
			return true;
		}
	}
	if (misses_any(inbox, instance, now))
		serialization_failure();
	return false;
}

/*
 * Marks the first message that may be released as processed and returns it.
 * False when there is none; then the instance is settled: no longer due, and
 * closed when it is complete.
 *
 * All this happens at one moment: a retry that came due between the search
 * and the settling would be forgotten.  And it happens by declarations that
 * stay until the commit, so they are held and asked once more; while one is
 * being changed, the instance stays due for a while.
 */
bool
drain_release(Oid inbox, const DrainedInstance *instance,
			  ReleasedMessage *released)
{
	TimestampTz now = GetCurrentTimestamp();

	if (instance->close)
	{
		drain_close(inbox, instance->id);
		return false;
	}
	expire_marked(inbox, instance->id);
	if (release_first(inbox, instance, now, released))
		return true;

	if (!declarations_try_hold(inbox))
	{
		clear_release_due(inbox, instance->id, now);
		instance_set_due(inbox, instance->id,
						 TimestampTzPlusMilliseconds(now, POSTPONE_MS));
		return false;
	}
	if (release_first(inbox, instance, now, released))
		return true;
	clear_release_due(inbox, instance->id, now);
	instance_close_if_complete(inbox, instance->id);
	return false;
}

/*
 * Closes an instance without processing the rest, which becomes dead letters.
 */
void
drain_close(Oid inbox, int64 instance_id)
{
	Datum		ids[1] = {Int64GetDatum(instance_id)};
	ArrayType  *array = array_of(INT8OID, ids, NULL, 1);
	Datum		values[2];

	(void) dead_letters_bury_instances(inbox, PointerGetDatum(array),
									   "sequence instance was closed");
	fill_id_and_now(values, instance_id);
	(void) statement_run(inbox, &close_now, values, NULL);
}

/*
 * Lets all waiting messages be released regardless of their conditions.
 */
void
drain_set_consume_all(Oid inbox, int64 instance_id)
{
	Datum		values[2];

	fill_id_and_now(values, instance_id);
	if (statement_run(inbox, &set_consume_all, values, NULL) == 0)
		instance_unknown(instance_id);
}
