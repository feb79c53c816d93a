/*-------------------------------------------------------------------------
 *
 * dead_letter.c
 *	  Turns messages that will not be processed into dead letters, and back.
 *
 * A dead letter keeps all that is known of the message.  Its claim, if there
 * is one, stays: a redelivery does not bring the message back by itself.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "arrays.h"
#include "dead_letter.h"
#include "instance.h"
#include "message.h"
#include "sql.h"

/* messages of instances that only recorded are not missed by anybody */
static const Statement find_unprocessed = {
	"SELECT COALESCE(pg_catalog.array_agg(m.id ORDER BY m.created_at, m.id),"
	" ARRAY[]::pg_catalog.int8[])"
	" FROM $inbox.sequence_instance i"
	" JOIN $inbox.sequenced_message m ON m.sequence_instance_id" EQ "i.id"
	" WHERE i.id" EQ "ANY ($1) AND NOT i.created_in_recording_mode"
	" AND " MESSAGE_IS_UNPROCESSED,
	1, {INT8ARRAYOID}
};

/* the copy has to be of what is deleted afterwards */
static const Statement lock = {
	"SELECT m.id FROM $inbox.sequenced_message m"
	" WHERE m.id" EQ "ANY ($1) AND " MESSAGE_IS_UNPROCESSED
	" ORDER BY m.id FOR UPDATE",
	1, {INT8ARRAYOID}
};

static const Statement copy = {
	"INSERT INTO $inbox.dead_letter"
	" (sequence_name, context_id, message_type, cluster_name, topic,"
	" sequenced_message_id, idempotence_id, state, trace_id_high, trace_id,"
	" span_id, parent_span_id, trace_id_string, sampled, created_at,"
	" attempts, last_error, reason, removed_at, payload_buffered,"
	" message_key, message_value, header_names, header_values)"
	" SELECT i.name, i.context_id, m.message_type, m.cluster_name, m.topic,"
	" m.sequenced_message_id, m.idempotence_id, m.state, m.trace_id_high,"
	" m.trace_id, m.span_id, m.parent_span_id, m.trace_id_string, m.sampled,"
	" m.created_at, m.attempts, m.last_error, $2, $3, b.id IS NOT NULL,"
	" b.message_key, b.message_value,"
	" (SELECT pg_catalog.array_agg(h.header_name ORDER BY h.id)"
	" FROM $inbox.message_header h WHERE h.buffered_message_id" EQ "b.id),"
	" (SELECT pg_catalog.array_agg(h.header_value ORDER BY h.id)"
	" FROM $inbox.message_header h WHERE h.buffered_message_id" EQ "b.id)"
	" FROM $inbox.sequenced_message m"
	" JOIN $inbox.sequence_instance i ON i.id" EQ "m.sequence_instance_id"
	" LEFT JOIN $inbox.buffered_message b ON b.sequenced_message_id" EQ "m.id"
	" WHERE m.id" EQ "ANY ($1) AND " MESSAGE_IS_UNPROCESSED
	" ORDER BY m.created_at, m.id"
	" RETURNING id",
	3, {INT8ARRAYOID, TEXTOID, TIMESTAMPTZOID}
};

static const Statement delete_headers = {
	"DELETE FROM $inbox.message_header h USING $inbox.buffered_message b"
	" WHERE h.buffered_message_id" EQ "b.id"
	" AND b.sequenced_message_id" EQ "ANY ($1)",
	1, {INT8ARRAYOID}
};

static const Statement delete_buffered = {
	"DELETE FROM $inbox.buffered_message b"
	" WHERE b.sequenced_message_id" EQ "ANY ($1)",
	1, {INT8ARRAYOID}
};

static const Statement delete_messages = {
	"DELETE FROM $inbox.sequenced_message m"
	" WHERE m.id" EQ "ANY ($1) AND " MESSAGE_IS_UNPROCESSED,
	1, {INT8ARRAYOID}
};

static const Statement take_out = {
	"DELETE FROM $inbox.dead_letter d WHERE d.id" EQ "$1"
	" RETURNING d.message_type, d.idempotence_id, d.context_id,"
	" CASE WHEN d.topic" NE "'' THEN d.topic END,"
	" CASE WHEN d.cluster_name" NE "'' THEN d.cluster_name END,"
	" d.sequenced_message_id, d.message_value, d.message_key,"
	" d.header_names, d.header_values,"
	" d.trace_id_high, d.trace_id, d.span_id, d.sampled,"
	" d.payload_buffered",
	1, {INT8OID}
};

static const Statement purge = {
	"DELETE FROM $inbox.dead_letter d WHERE d.id" EQ "ANY (ARRAY("
	"SELECT o.id FROM $inbox.dead_letter o WHERE o.removed_at" LT "$1"
	" ORDER BY o.removed_at LIMIT $2 FOR UPDATE SKIP LOCKED))",
	2, {TIMESTAMPTZOID, INT8OID}
};

/*
 * Returns how many dead letters were made; the ID of the first can be read
 * from the statement's result before the next one runs.
 */
static int64
bury(Oid inbox, Datum message_ids, const text *reason, int64 *first_id)
{
	Datum		values[3];
	Datum		id;
	int64		count;

	values[0] = message_ids;
	values[1] = PointerGetDatum(reason);
	values[2] = TimestampTzGetDatum(GetCurrentTimestamp());
	if (statement_run(inbox, &lock, values, NULL) == 0)
		return 0;
	count = statement_run(inbox, &copy, values, NULL);
	if (count > 0 && statement_get(1, INT8OID, &id))
		*first_id = DatumGetInt64(id);

	(void) statement_run(inbox, &delete_headers, values, NULL);
	(void) statement_run(inbox, &delete_buffered, values, NULL);
	(void) statement_run(inbox, &delete_messages, values, NULL);
	return count;
}

/*
 * Gives up on one message and returns the ID of the dead letter.  The caller
 * holds its instance.
 */
int64
dead_letter_bury(Oid inbox, int64 message_id, const text *reason)
{
	Datum		ids[1] = {Int64GetDatum(message_id)};
	ArrayType  *array = array_of(INT8OID, ids, NULL, 1);
	int64		id = 0;

	if (bury(inbox, PointerGetDatum(array), reason, &id) == 0)
		message_refuse(inbox, message_id);
	return id;
}

/*
 * Gives up on all messages of instances that have not been processed.  The
 * caller holds the instances FOR UPDATE.
 */
int64
dead_letters_bury_instances(Oid inbox, Datum instance_ids, const char *reason)
{
	Datum		values[1] = {instance_ids};
	Datum		found;
	ArrayType  *message_ids;
	int64		first_id;

	if (statement_run(inbox, &find_unprocessed, values, NULL) == 0 ||
		!statement_get(1, INT8ARRAYOID, &found))
		return 0;
	message_ids = DatumGetArrayTypePCopy(found);
	if (ARR_NDIM(message_ids) == 0)
		return 0;
	return bury(inbox, PointerGetDatum(message_ids), cstring_to_text(reason),
				&first_id);
}

static void
require_payload(int64 id)
{
	Datum		buffered;

	if (statement_get(15, BOOLOID, &buffered) && DatumGetBool(buffered))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("dead letter %lld cannot come in again", (long long) id),
			 errdetail("Its payload was not buffered.")));
}

/*
 * Takes out a dead letter.  Who comes second finds none.
 */
void
dead_letter_exhume(Oid inbox, int64 id, DeadLetter *letter)
{
	Datum		values[1] = {Int64GetDatum(id)};
	Message    *message = &letter->message;
	Payload    *payload = &message->payload;
	Datum		value;

	memset(letter, 0, sizeof(*letter));
	if (statement_run(inbox, &take_out, values, NULL) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_NO_DATA_FOUND),
				 errmsg("dead letter %lld does not exist", (long long) id)));
	require_payload(id);

	message->key.message_type = statement_get_text(1);
	message->key.idempotence_id = statement_get_text(2);
	letter->context_id = statement_get_text(3);
	message->topic = statement_get_text(4);
	message->cluster_name = statement_get_text(5);
	if (statement_get(6, UUIDOID, &value))
	{
		message->uuid = palloc(sizeof(pg_uuid_t));
		*message->uuid = *DatumGetUUIDP(value);
	}
	if (statement_get(7, BYTEAOID, &value))
		payload->value = DatumGetByteaPCopy(value);
	if (statement_get(8, BYTEAOID, &value))
		payload->key = DatumGetByteaPCopy(value);
	if (statement_get(9, TEXTARRAYOID, &value))
		payload->header_names = DatumGetArrayTypePCopy(value);
	if (statement_get(10, BYTEAARRAYOID, &value))
		payload->header_values = DatumGetArrayTypePCopy(value);
	payload_count_headers(payload);
	message_read_trace(11, &message->trace);
}

/*
 * Removes dead letters that were made before a moment, and returns how many.
 */
int64
dead_letters_purge(Oid inbox, TimestampTz before, int limit)
{
	Datum		values[2];

	values[0] = TimestampTzGetDatum(before);
	values[1] = Int64GetDatum(limit);
	return statement_run(inbox, &purge, values, NULL);
}
