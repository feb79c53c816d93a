/*-------------------------------------------------------------------------
 *
 * claiming.c
 *	  The SQL-callable functions that open instances and take claims.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "args.h"
#include "claim.h"
#include "declaration.h"
#include "idle.h"
#include "inbox.h"
#include "instance.h"
#include "window.h"

PG_FUNCTION_INFO_V1(seqinbox_claim);
Datum
seqinbox_claim(PG_FUNCTION_ARGS)
{
	ClaimKey	key;
	Oid			inbox;
	bool		won;

	claim_key_from_args(fcinfo, &key);
	inbox = inbox_in_use();
	PreventCommandIfReadOnly("seqinbox_claim()");
	idle_limit();

	SPI_connect();
	if (PG_ARGISNULL(2))
		won = claim_take_in_window(inbox, &key);
	else
		won = claim_hold_and_take(inbox, &key, PG_GETARG_INT64(2));
	SPI_finish();

	PG_RETURN_BOOL(won);
}

static const char *
result_name(ClaimResult result)
{
	switch (result)
	{
		case CLAIM_WON:
			return "CLAIMED";
		case CLAIM_DUPLICATE:
			return "DUPLICATE";
		case CLAIM_IN_FLIGHT:
			return "IN_FLIGHT";
	}
	elog(ERROR, "unknown claim result %d", (int) result);
	return NULL;				/* keep compiler quiet */
}

PG_FUNCTION_INFO_V1(seqinbox_try_claim);
Datum
seqinbox_try_claim(PG_FUNCTION_ARGS)
{
	ClaimKey	key;
	Oid			inbox;
	ClaimResult result;

	claim_key_from_args(fcinfo, &key);
	inbox = inbox_in_use();
	PreventCommandIfReadOnly("seqinbox_try_claim()");
	idle_limit();

	SPI_connect();
	if (PG_ARGISNULL(2))
		result = claim_try_in_window(inbox, &key);
	else
		result = claim_try(inbox, &key, PG_GETARG_INT64(2));
	SPI_finish();

	PG_RETURN_TEXT_P(cstring_to_text(result_name(result)));
}

/*
 * The retention of a declared sequence is that of its declaration.
 */
static void
find_retention(Oid inbox, const text *sequence_name, const Interval *argument,
			   Interval *retention_period)
{
	if (declared_retention(inbox, sequence_name, retention_period))
		return;
	if (argument == NULL)
		undeclared_sequence(sequence_name,
							"Declare it with seqinbox_declare(), or pass a retention_period.");
	*retention_period = *argument;
}

PG_FUNCTION_INFO_V1(seqinbox_open_instance);
Datum
seqinbox_open_instance(PG_FUNCTION_ARGS)
{
	text	   *sequence_name = arg_name(fcinfo, 0, "sequence_name",
										 MAX_TYPE_LENGTH);
	text	   *context_id = arg_name(fcinfo, 1, "context_id", MAX_ID_LENGTH);
	const Interval *argument = ARG_INTERVAL(2);
	Interval	retention_period;
	Oid			inbox = inbox_in_use();
	Instance	instance = {0};

	if (argument != NULL)
		check_retention(argument, "retention_period");
	if (is_window_sequence(sequence_name))
		ereport(ERROR,
				(errcode(ERRCODE_RESERVED_NAME),
				 errmsg("sequence name \"%s\" is reserved", WINDOW_SEQUENCE)));

	SPI_connect();
	find_retention(inbox, sequence_name, argument, &retention_period);
	instance.sequence_name = sequence_name;
	instance.context_id = context_id;
	instance.retention_period = &retention_period;
	instance_open(inbox, &instance);
	SPI_finish();

	PG_RETURN_INT64(instance.id);
}
