/*-------------------------------------------------------------------------
 *
 * maintenance.c
 *	  The SQL-callable procedure that does the housekeeping of an inbox.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/lsyscache.h"

#include "args.h"
#include "housekeeping.h"
#include "inbox.h"
#include "owner.h"

#define MAX_BATCH_SIZE 100000

#define RESULT_COLUMNS 5

static const Interval *
arg_interval(FunctionCallInfo fcinfo, int n, const char *argument)
{
	if (PG_ARGISNULL(n))
		null_argument(argument);
	check_not_negative(PG_GETARG_INTERVAL_P(n), argument);
	return PG_GETARG_INTERVAL_P(n);
}

static int
arg_batch_size(FunctionCallInfo fcinfo, int n)
{
	if (PG_ARGISNULL(n))
		null_argument("batch_size");
	if (PG_GETARG_INT32(n) < 1 || PG_GETARG_INT32(n) > MAX_BATCH_SIZE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be between %d and %d",
						"batch_size", 1, MAX_BATCH_SIZE)));
	return PG_GETARG_INT32(n);
}

static Datum
report_row(FunctionCallInfo fcinfo, const HousekeepingReport *report)
{
	TupleDesc	tupdesc;
	Datum		values[RESULT_COLUMNS];
	bool		nulls[RESULT_COLUMNS] = {false};

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = Int64GetDatum(report->closed);
	values[1] = Int64GetDatum(report->marked);
	values[2] = Int64GetDatum(report->removed);
	values[3] = Int64GetDatum(report->buried);
	values[4] = Int64GetDatum(report->purged);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
											 values, nulls));
}

static bool
called_atomically(FunctionCallInfo fcinfo)
{
	return fcinfo->context == NULL || !IsA(fcinfo->context, CallContext) ||
		((CallContext *) fcinfo->context)->atomic;
}

/*
 * Begins a new transaction.  It is READ COMMITTED, whatever the default is:
 * what others did since its start has to be seen, and is no reason to fail.
 */
static void
renew_transaction(void)
{
	SPI_commit();
	SPI_start_transaction();
	XactIsoLevel = XACT_READ_COMMITTED;
}

/*
 * Does the work of one transaction, a superuser's as the owner of the inbox.
 */
static bool
run_turn(Oid inbox, HousekeepingRun *run)
{
	Oid			owner = owner_for_housekeeping(inbox);
	Acting		acting;
	bool		more;

	if (owner == GetUserId())
		return housekeeping_turn(inbox, run);
	act_as(owner, &acting);
	more = housekeeping_turn(inbox, run);
	end_settings(&acting);
	act_as_before(&acting);
	return more;
}

/*
 * Each turn is a transaction of its own.  Inside of a transaction block,
 * SPI_commit() raises the error that every such procedure gives.
 */
PG_FUNCTION_INFO_V1(seqinbox_housekeeping);
Datum
seqinbox_housekeeping(PG_FUNCTION_ARGS)
{
	HousekeepingOptions options;
	HousekeepingRun run;
	const Interval *max_duration = arg_interval(fcinfo, 2, "max_duration");
	TimestampTz deadline = moment_after(GetCurrentTimestamp(), max_duration);
	Oid			inbox = inbox_in_use();
	bool		more;

	options.removal_delay = arg_interval(fcinfo, 0, "removal_delay");
	(void) moment_after(GetCurrentTimestamp(), options.removal_delay);
	options.batch_size = arg_batch_size(fcinfo, 1);
	options.keep_dead_letters = NULL;
	if (!PG_ARGISNULL(3))
	{
		options.keep_dead_letters = arg_interval(fcinfo, 3,
												 "keep_dead_letters");
		(void) moment_before(GetCurrentTimestamp(), options.keep_dead_letters);
	}

	SPI_connect_ext(called_atomically(fcinfo) ? 0 : SPI_OPT_NONATOMIC);
	housekeeping_begin(&run, &options);
	renew_transaction();
	do
	{
		CHECK_FOR_INTERRUPTS();
		more = run_turn(inbox, &run);
		renew_transaction();
	} while (more && GetCurrentTimestamp() < deadline);
	housekeeping_log(get_namespace_name(inbox), &run);
	SPI_finish();

	return report_row(fcinfo, &run.report);
}
