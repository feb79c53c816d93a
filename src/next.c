/*-------------------------------------------------------------------------
 *
 * next.c
 *	  The SQL-callable function that hands out waiting messages.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"

#include "args.h"
#include "drain.h"
#include "idle.h"
#include "inbox.h"

#define RESULT_COLUMNS 15

static void
set_column(Datum *values, bool *nulls, int column, const void *pointer)
{
	values[column] = PointerGetDatum(pointer);
	nulls[column] = pointer == NULL;
}

/*
 * Makes the row in the memory of the caller, which outlives SPI_finish().
 */
static HeapTupleHeader
make_row(TupleDesc tupdesc, const DrainedInstance *instance,
		 const ReleasedMessage *released)
{
	const Message *message = &released->message;
	const Payload *payload = &message->payload;
	Datum		values[RESULT_COLUMNS];
	bool		nulls[RESULT_COLUMNS] = {false};

	values[0] = Int64GetDatum(released->id);
	values[1] = Int64GetDatum(instance->id);
	set_column(values, nulls, 2, message->key.message_type);
	set_column(values, nulls, 3, message->key.idempotence_id);
	set_column(values, nulls, 4, instance->context_id);
	set_column(values, nulls, 5, payload->value);
	set_column(values, nulls, 6, payload->key);
	set_column(values, nulls, 7, payload->header_names);
	set_column(values, nulls, 8, payload->header_values);
	set_column(values, nulls, 9, message->topic);
	set_column(values, nulls, 10, message->cluster_name);
	set_column(values, nulls, 11, message->uuid);
	set_column(values, nulls, 12, traceparent_build(&message->trace));
	values[13] = Int32GetDatum(released->attempts);
	values[14] = TimestampTzGetDatum(released->received_at);
	return SPI_returntuple(heap_form_tuple(tupdesc, values, nulls), tupdesc);
}

/*
 * Without an instance, goes on until there is a message or no instance is
 * due.  Each turn settles the instance that it locked, so this ends.
 */
static bool
release_one(Oid inbox, FunctionCallInfo fcinfo, DrainedInstance *instance,
			ReleasedMessage *released)
{
	if (!PG_ARGISNULL(0))
	{
		drain_lock(inbox, PG_GETARG_INT64(0), instance);
		return drain_release(inbox, instance, released);
	}
	while (drain_lock_any(inbox, instance))
	{
		if (drain_release(inbox, instance, released))
			return true;
		CHECK_FOR_INTERRUPTS();
	}
	return false;
}

PG_FUNCTION_INFO_V1(seqinbox_next);
Datum
seqinbox_next(PG_FUNCTION_ARGS)
{
	FuncCallContext *call;
	Oid			inbox;
	TupleDesc	tupdesc;
	DrainedInstance instance;
	ReleasedMessage released;
	HeapTupleHeader row = NULL;

	if (!SRF_IS_FIRSTCALL())
	{
		call = SRF_PERCALL_SETUP();
		SRF_RETURN_DONE(call);
	}

	call = SRF_FIRSTCALL_INIT();
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	tupdesc = BlessTupleDesc(tupdesc);
	inbox = inbox_in_use();
	PreventCommandIfReadOnly("seqinbox_next()");
	idle_limit();

	SPI_connect();
	if (release_one(inbox, fcinfo, &instance, &released))
		row = make_row(tupdesc, &instance, &released);
	SPI_finish();

	if (row == NULL)
		SRF_RETURN_DONE(call);
	SRF_RETURN_NEXT(call, PointerGetDatum(row));
}
