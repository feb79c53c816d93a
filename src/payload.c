/*-------------------------------------------------------------------------
 *
 * payload.c
 *	  Buffers key, value and headers of messages that have to wait.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"

#include "payload.h"
#include "rows.h"
#include "sql.h"

static const Statement buffer = {
	"INSERT INTO $inbox.buffered_message"
	" (sequence_instance_id, sequenced_message_id, message_key, message_value)"
	" VALUES ($1, $2, $3, $4)"
	" RETURNING id",
	4, {INT8OID, INT8OID, BYTEAOID, BYTEAOID}
};

static const Statement buffer_rows = {
	"INSERT INTO $inbox.buffered_message"
	" (sequence_instance_id, sequenced_message_id, message_key, message_value)"
	" SELECT r.instance_id, r.message_id, r.message_key, r.message_value"
	" FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2),"
	" pg_catalog.unnest($3), pg_catalog.unnest($4))"
	" WITH ORDINALITY AS r"
	" (instance_id, message_id, message_key, message_value, place)"
	" ORDER BY r.place"
	" RETURNING id",
	4, {INT8ARRAYOID, INT8ARRAYOID, BYTEAARRAYOID, BYTEAARRAYOID}
};

/* the IDs that the defaults give keep the headers' order */
static const Statement buffer_headers = {
	"INSERT INTO $inbox.message_header"
	" (buffered_message_id, header_name, header_value)"
	" SELECT $1, h.name, h.value"
	" FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3))"
	" WITH ORDINALITY AS h (name, value, place)"
	" ORDER BY h.place",
	3, {INT8OID, TEXTARRAYOID, BYTEAARRAYOID}
};

static const Statement drop_headers = {
	"DELETE FROM $inbox.message_header h USING $inbox.buffered_message b"
	" WHERE h.buffered_message_id" EQ "b.id"
	" AND b.sequenced_message_id" EQ "$1",
	1, {INT8OID}
};

static const Statement drop = {
	"DELETE FROM $inbox.buffered_message b"
	" WHERE b.sequenced_message_id" EQ "$1",
	1, {INT8OID}
};

/* without headers, both arrays are null */
static const Statement fetch = {
	"SELECT b.message_value, b.message_key,"
	" (SELECT pg_catalog.array_agg(h.header_name ORDER BY h.id)"
	" FROM $inbox.message_header h WHERE h.buffered_message_id" EQ "b.id),"
	" (SELECT pg_catalog.array_agg(h.header_value ORDER BY h.id)"
	" FROM $inbox.message_header h WHERE h.buffered_message_id" EQ "b.id)"
	" FROM $inbox.buffered_message b"
	" WHERE b.sequenced_message_id" EQ "$1"
	" ORDER BY b.id DESC LIMIT 1",
	1, {INT8OID}
};

static const Statement find = {
	"SELECT 1 FROM $inbox.buffered_message b"
	" WHERE b.sequenced_message_id" EQ "$1"
	" LIMIT 1",
	1, {INT8OID}
};

static int
array_length_1d(const ArrayType *array, const char *argument)
{
	if (array == NULL || ARR_NDIM(array) == 0)
		return 0;
	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must have one dimension", argument)));
	return ARR_DIMS(array)[0];
}

/*
 * Checks the header arrays against each other and counts the headers.
 */
void
payload_count_headers(Payload *payload)
{
	int			names = array_length_1d(payload->header_names,
										"header_names");
	int			values = array_length_1d(payload->header_values,
										 "header_values");

	if (names != values)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("arguments \"header_names\" and \"header_values\" must have the same length"),
				 errdetail("The lengths are %d and %d.", names, values)));
	if (names > 0 && array_contains_nulls(payload->header_names))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not contain nulls",
						"header_names")));
	payload->header_count = names;
}

/*
 * Where a payload may be left out, a tombstone counts as given only by its
 * key or headers.
 */
bool
payload_is_given(const Payload *payload)
{
	return payload->value != NULL || payload->key != NULL ||
		payload->header_count > 0;
}

static void
insert_headers(Oid inbox, int64 buffered_id, const Payload *payload)
{
	Datum		values[3];

	values[0] = Int64GetDatum(buffered_id);
	values[1] = PointerGetDatum(payload->header_names);
	values[2] = PointerGetDatum(payload->header_values);
	(void) statement_run(inbox, &buffer_headers, values, NULL);
}

/*
 * Buffers the payload of a message that has none buffered.
 */
void
payload_buffer(Oid inbox, int64 instance_id, int64 message_id,
			   const Payload *payload)
{
	Datum		values[4];
	char		nulls[4] = {' ', ' ', ' ', ' '};

	values[0] = Int64GetDatum(instance_id);
	values[1] = Int64GetDatum(message_id);
	values[2] = PointerGetDatum(payload->key);
	values[3] = PointerGetDatum(payload->value);
	if (payload->key == NULL)
		nulls[2] = 'n';
	if (payload->value == NULL)
		nulls[3] = 'n';

	if (statement_run(inbox, &buffer, values, nulls) == 0)
		elog(ERROR, "message was not buffered");
	if (payload->header_count > 0)
		insert_headers(inbox, statement_get_id(0), payload);
}

static void
buffer_each(Oid inbox, const PayloadOf *payloads, int count)
{
	int64	   *buffered_ids = palloc(sizeof(int64) * count);
	Rows		rows;

	rows_begin(&rows, 4, count);
	for (int i = 0; i < count; i++)
	{
		rows_add(&rows);
		rows_set(&rows, 0, Int64GetDatum(payloads[i].instance_id));
		rows_set(&rows, 1, Int64GetDatum(payloads[i].message_id));
		rows_set_pointer(&rows, 2, payloads[i].payload->key);
		rows_set_pointer(&rows, 3, payloads[i].payload->value);
	}
	if (rows_run(inbox, &buffer_rows, &rows) != (uint64) count)
		elog(ERROR, "not all messages were buffered");
	for (int i = 0; i < count; i++)
		buffered_ids[i] = statement_get_id(i);
	for (int i = 0; i < count; i++)
	{
		if (payloads[i].payload->header_count > 0)
			insert_headers(inbox, buffered_ids[i], payloads[i].payload);
	}
}

/*
 * As payload_buffer(), for several messages at once.
 */
void
payloads_buffer(Oid inbox, const PayloadOf *payloads, int count)
{
	if (count == 1)
		payload_buffer(inbox, payloads->instance_id, payloads->message_id,
					   payloads->payload);
	else if (count > 1)
		buffer_each(inbox, payloads, count);
}

void
payload_drop(Oid inbox, int64 message_id)
{
	Datum		values[1] = {Int64GetDatum(message_id)};

	(void) statement_run(inbox, &drop_headers, values, NULL);
	(void) statement_run(inbox, &drop, values, NULL);
}

bool
payload_is_buffered(Oid inbox, int64 message_id)
{
	Datum		values[1] = {Int64GetDatum(message_id)};

	return statement_run(inbox, &find, values, NULL) > 0;
}

/*
 * Reads a payload into the current memory context.
 */
void
payload_fetch(Oid inbox, int64 message_id, Payload *payload)
{
	Datum		values[1] = {Int64GetDatum(message_id)};
	Datum		value;

	memset(payload, 0, sizeof(*payload));
	if (statement_run(inbox, &fetch, values, NULL) == 0)
		return;
	if (statement_get(1, BYTEAOID, &value))
		payload->value = DatumGetByteaPCopy(value);
	if (statement_get(2, BYTEAOID, &value))
		payload->key = DatumGetByteaPCopy(value);
	if (statement_get(3, TEXTARRAYOID, &value))
		payload->header_names = DatumGetArrayTypePCopy(value);
	if (statement_get(4, BYTEAARRAYOID, &value))
		payload->header_values = DatumGetArrayTypePCopy(value);
	payload_count_headers(payload);
}

/*
 * A message without a buffered payload cannot be handed out again.
 */
void
payload_require(Oid inbox, int64 message_id)
{
	if (payload_is_buffered(inbox, message_id))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("sequenced message %lld cannot be offered again",
					(long long) message_id),
			 errdetail("Its payload is not buffered.")));
}

/*
 * Lets a buffered payload follow its message to another instance.  That is
 * rare, and written anew it takes no right that consumers do not have.
 */
void
payload_move(Oid inbox, int64 instance_id, int64 message_id)
{
	Payload		payload;

	if (!payload_is_buffered(inbox, message_id))
		return;
	payload_fetch(inbox, message_id, &payload);
	payload_drop(inbox, message_id);
	payload_buffer(inbox, instance_id, message_id, &payload);
}
