/*-------------------------------------------------------------------------
 *
 * dead_letter.c
 *	  Turns messages that will not be processed into dead letters.
 *
 * A dead letter keeps all that is known of the message.  Its claim, if there
 * is one, stays: a redelivery does not bring the message back by itself.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "dead_letter.h"
#include "message.h"
#include "sql.h"

#define IS_UNPROCESSED \
	"(m.state" EQ "'" STATE_WAITING "' OR m.state" EQ "'" STATE_FAILED "')"

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
	" FROM $inbox.sequence_instance i"
	" JOIN $inbox.sequenced_message m ON m.sequence_instance_id" EQ "i.id"
	" LEFT JOIN $inbox.buffered_message b ON b.sequenced_message_id" EQ "m.id"
	" WHERE i.id" EQ "$1 AND " IS_UNPROCESSED
	" ORDER BY m.created_at, m.id",
	3, {INT8OID, TEXTOID, TIMESTAMPTZOID}
};

static const Statement delete_headers = {
	"DELETE FROM $inbox.message_header h"
	" USING $inbox.buffered_message b, $inbox.sequenced_message m"
	" WHERE h.buffered_message_id" EQ "b.id"
	" AND b.sequenced_message_id" EQ "m.id"
	" AND m.sequence_instance_id" EQ "$1 AND " IS_UNPROCESSED,
	1, {INT8OID}
};

static const Statement delete_buffered = {
	"DELETE FROM $inbox.buffered_message b USING $inbox.sequenced_message m"
	" WHERE b.sequenced_message_id" EQ "m.id"
	" AND m.sequence_instance_id" EQ "$1 AND " IS_UNPROCESSED,
	1, {INT8OID}
};

static const Statement delete_messages = {
	"DELETE FROM $inbox.sequenced_message m"
	" WHERE m.sequence_instance_id" EQ "$1 AND " IS_UNPROCESSED,
	1, {INT8OID}
};

/*
 * Buries all messages of an instance that have not been processed.  The
 * caller holds the instance FOR UPDATE.
 */
void
dead_letters_bury_instance(Oid inbox, int64 instance_id, const char *reason)
{
	Datum		values[3];

	values[0] = Int64GetDatum(instance_id);
	values[1] = CStringGetTextDatum(reason);
	values[2] = TimestampTzGetDatum(GetCurrentTimestamp());
	(void) statement_run(inbox, &copy, values, NULL);
	(void) statement_run(inbox, &delete_headers, values, NULL);
	(void) statement_run(inbox, &delete_buffered, values, NULL);
	(void) statement_run(inbox, &delete_messages, values, NULL);
}
