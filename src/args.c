/*-------------------------------------------------------------------------
 *
 * args.c
 *	  Reads and checks the arguments of SQL-callable functions.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "datatype/timestamp.h"
#include "utils/builtins.h"

#include "args.h"
#include "compat.h"

static void
null_argument(const char *argument)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("argument \"%s\" must not be null", argument)));
}

/*
 * A text that names something must be there, not be empty and not be too
 * long for an index.
 */
void
check_name(const text *value, const char *argument, int max_length)
{
	int			length;

	if (value == NULL)
		null_argument(argument);

	length = VARSIZE_ANY_EXHDR(value);
	if (length == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be empty", argument)));
	if (length > max_length)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" is too long", argument),
				 errdetail("It has %d bytes; the limit is %d bytes.",
						   length, max_length)));
}

text *
arg_name(FunctionCallInfo fcinfo, int n, const char *argument, int max_length)
{
	text	   *value = ARG_TEXT(n);

	check_name(value, argument, max_length);
	return value;
}

int64
arg_id(FunctionCallInfo fcinfo, int n, const char *argument)
{
	if (PG_ARGISNULL(n))
		null_argument(argument);
	return PG_GETARG_INT64(n);
}

/*
 * Compared as the server compares intervals: a month has 30 days.
 */
bool
interval_is_positive(const Interval *interval)
{
	Interval	zero;

	memset(&zero, 0, sizeof(zero));
	return DatumGetBool(DirectFunctionCall2(interval_gt,
											IntervalPGetDatum(interval),
											IntervalPGetDatum(&zero)));
}

TimestampTz
moment_after(TimestampTz moment, const Interval *interval)
{
	return DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
												   TimestampTzGetDatum(moment),
												   IntervalPGetDatum(interval)));
}

/*
 * The moment at which a failed message is offered again, or DT_NOEND for
 * never.
 */
TimestampTz
arg_retry_at(const Interval *retry_after)
{
	Interval	zero;
	TimestampTz retry_at;

	if (retry_after == NULL)
		return DT_NOEND;

	memset(&zero, 0, sizeof(zero));
	if (DatumGetBool(DirectFunctionCall2(interval_lt,
										 IntervalPGetDatum(retry_after),
										 IntervalPGetDatum(&zero))))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be negative",
						"retry_after")));

	retry_at = moment_after(GetCurrentTimestamp(), retry_after);
	if (TIMESTAMP_NOT_FINITE(retry_at))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be finite", "retry_after")));
	return retry_at;
}
