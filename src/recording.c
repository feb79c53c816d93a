/*-------------------------------------------------------------------------
 *
 * recording.c
 *	  The SQL-callable functions that write and read the record of a message.
 *
 * Locks are taken in the order instance, claim, message.  Freeing a claim
 * comes last: it waits for nobody who could wait for the message.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "args.h"
#include "claim.h"
#include "compat.h"
#include "declaration.h"
#include "inbox.h"
#include "instance.h"
#include "message.h"
#include "payload.h"

/*
 * Writes the record of a message: a new one, or over the one that counts.
 *
 * Whoever stores without a claim can be overtaken between the look-up and
 * the update; the next look-up then sees what the other one did.
 */
static int64
record_message(Oid inbox, int64 instance_id, const Message *message,
			   const Verdict *verdict)
{
	for (;;)
	{
		Record		record;

		if (!message_lookup_current(inbox, &message->key, &record))
			return message_insert(inbox, instance_id, message, verdict);
		if (state_is(record.state, STATE_PROCESSED) &&
			!state_is(verdict->state, STATE_PROCESSED))
			message_refuse_state(&record);
		if (message_update(inbox, record.id, instance_id, message, verdict))
		{
			if (record.instance_id != instance_id)
				payload_move(inbox, instance_id, record.id);
			return record.id;
		}
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * A waiting message always has its payload buffered, a processed one never.
 * What is buffered stays, unless this delivery brings it again: it is the
 * same message.
 */
static void
update_payload(Oid inbox, int64 instance_id, int64 id,
			   const Payload *payload, const char *state)
{
	bool		waiting = state_is(state, STATE_WAITING);

	if (state_is(state, STATE_PROCESSED))
		payload_drop(inbox, id);
	else if (payload_is_given(payload) ||
			 (waiting && !payload_is_buffered(inbox, id)))
	{
		payload_drop(inbox, id);
		payload_buffer(inbox, instance_id, id, payload);
	}
}

/*
 * Makes sure that somebody drains the instance when this commits and the
 * caller dies before it could.
 */
static void
update_instance(Oid inbox, int64 instance_id, const Verdict *verdict)
{
	if (state_is(verdict->state, STATE_PROCESSED))
		(void) instance_finish(inbox, instance_id);
	else if (state_is(verdict->state, STATE_WAITING))
		instance_set_due(inbox, instance_id, GetCurrentTimestamp());
	else if (!TIMESTAMP_IS_NOEND(verdict->retry_at))
		instance_set_due(inbox, instance_id, verdict->retry_at);
}

PG_FUNCTION_INFO_V1(seqinbox_store);
Datum
seqinbox_store(PG_FUNCTION_ARGS)
{
	Message		message;
	int64		instance_id = arg_id(fcinfo, 2, "sequence_instance_id");
	Verdict		verdict;
	Oid			inbox;
	int64		id;

	message_from_args(fcinfo, 4, &message);
	verdict.state = state_from_arg(fcinfo, 3);
	verdict.error = arg_error(fcinfo, 12);
	verdict.retry_at = DT_NOEND;
	inbox = inbox_in_use();

	SPI_connect();
	instance_hold(inbox, instance_id);
	id = record_message(inbox, instance_id, &message, &verdict);
	update_payload(inbox, instance_id, id, &message.payload, verdict.state);
	update_instance(inbox, instance_id, &verdict);
	SPI_finish();

	PG_RETURN_INT64(id);
}

#define LOOKUP_COLUMNS 5

PG_FUNCTION_INFO_V1(seqinbox_lookup);
Datum
seqinbox_lookup(PG_FUNCTION_ARGS)
{
	FuncCallContext *call;
	ClaimKey	key;
	Oid			inbox;
	Record		record;
	TupleDesc	tupdesc;
	Datum		values[LOOKUP_COLUMNS];
	bool		nulls[LOOKUP_COLUMNS] = {false};
	bool		found;

	if (!SRF_IS_FIRSTCALL())
	{
		call = SRF_PERCALL_SETUP();
		SRF_RETURN_DONE(call);
	}

	call = SRF_FIRSTCALL_INIT();
	claim_key_from_args(fcinfo, &key);
	inbox = inbox_in_use();
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	tupdesc = BlessTupleDesc(tupdesc);

	SPI_connect();
	found = message_lookup(inbox, &key, &record);
	if (found)
	{
		HeapTuple	row;

		values[0] = Int64GetDatum(record.id);
		values[1] = CStringGetTextDatum(record.state);
		values[2] = Int64GetDatum(record.instance_id);
		values[3] = Int32GetDatum(record.attempts);
		values[4] = TimestampTzGetDatum(record.created_at);
		row = heap_form_tuple(tupdesc, values, nulls);
		call->user_fctx = SPI_returntuple(row, tupdesc);
	}
	SPI_finish();

	if (!found)
		SRF_RETURN_DONE(call);
	SRF_RETURN_NEXT(call, PointerGetDatum(call->user_fctx));
}

static void
require_payload_for_retry(Oid inbox, int64 id, const Verdict *verdict)
{
	if (!TIMESTAMP_IS_NOEND(verdict->retry_at))
		payload_require(inbox, id);
}

/*
 * Of several records that history left, the one that counts decides: it may
 * say that the message was processed, or is waiting, and then has the claim.
 */
static void
refuse_if_superseded(Oid inbox, int64 id, const ClaimKey *key)
{
	Record		record;

	if (message_lookup(inbox, key, &record) && record.id != id &&
		!state_is(record.state, STATE_FAILED))
		message_refuse_state(&record);
}

PG_FUNCTION_INFO_V1(seqinbox_fail_and_release);
Datum
seqinbox_fail_and_release(PG_FUNCTION_ARGS)
{
	int64		id = arg_id(fcinfo, 0, "id");
	Verdict		verdict;
	Oid			inbox;
	Record		record;
	ClaimKey	key;
	bool		released;

	verdict.state = STATE_FAILED;
	verdict.error = arg_error(fcinfo, 1);
	verdict.retry_at = arg_retry_at(ARG_INTERVAL(2));
	inbox = inbox_in_use();

	SPI_connect();
	message_get(inbox, id, &record, &key);
	instance_hold(inbox, record.instance_id);
	refuse_if_superseded(inbox, id, &key);
	if (!message_set_failed(inbox, id, &verdict))
		message_refuse(inbox, id);

	/*
	 * Only now: a claim that came with what the update had to wait for was
	 * not to be seen before.
	 */
	released = claim_delete(inbox, &key);
	require_payload_for_retry(inbox, id, &verdict);
	update_instance(inbox, record.instance_id, &verdict);
	SPI_finish();

	if (!released)
		ereport(WARNING,
				(errmsg("sequenced message %lld had no claim",
						(long long) id)));
	PG_RETURN_BOOL(released);
}

static void
refuse_claimed(const ClaimKey *key)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("message of type \"%s\" is claimed by another delivery",
					text_to_cstring(key->message_type)),
			 errdetail("Its idempotence ID is \"%s\".",
					   text_to_cstring(key->idempotence_id))));
}

/*
 * A failure may be recorded of a message that is new or has failed before.
 */
static void
refuse_unless_failed(Oid inbox, const ClaimKey *key)
{
	Record		record;

	if (message_lookup_current(inbox, key, &record) &&
		!state_is(record.state, STATE_FAILED))
		message_refuse_state(&record);
}

/*
 * The claim is taken for the time of this transaction: it waits for another
 * delivery that is being decided, and keeps out those that come meanwhile.
 */
PG_FUNCTION_INFO_V1(seqinbox_record_failure);
Datum
seqinbox_record_failure(PG_FUNCTION_ARGS)
{
	Message		message;
	text	   *context_id = arg_name(fcinfo, 2, "context_id", MAX_ID_LENGTH);
	Verdict		verdict;
	Declaration declaration;
	Oid			inbox;
	Instance	instance = {0};
	int64		id;

	message_from_args(fcinfo, 4, &message);
	verdict.state = STATE_FAILED;
	verdict.error = arg_error(fcinfo, 3);
	verdict.retry_at = arg_retry_at(ARG_INTERVAL(12));
	inbox = inbox_in_use();

	SPI_connect();
	declaration_of_type(inbox, message.key.message_type, &declaration);
	instance.sequence_name = declaration.sequence_name;
	instance.context_id = context_id;
	instance.retention_period = &declaration.retention_period;
	instance.recording = declaration.recording;
	instance_open(inbox, &instance);
	if (!claim_take(inbox, &message.key, instance.id))
		refuse_claimed(&message.key);
	refuse_unless_failed(inbox, &message.key);
	id = record_message(inbox, instance.id, &message, &verdict);
	update_payload(inbox, instance.id, id, &message.payload, verdict.state);
	require_payload_for_retry(inbox, id, &verdict);
	update_instance(inbox, instance.id, &verdict);
	(void) claim_delete(inbox, &message.key);
	SPI_finish();

	PG_RETURN_INT64(id);
}
