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

void
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

/*
 * What the server could take in, but not give back.
 */
void
check_size(int64 size, const char *what, int limit)
{
	if (size > limit)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("%s is too large", what),
				 errdetail("It has %lld bytes; the limit is %d bytes.",
						   (long long) size, limit)));
}

/*
 * Why a message failed, or NULL.
 */
text *
arg_error(FunctionCallInfo fcinfo, int n)
{
	text	   *error = ARG_TEXT(n);

	if (error != NULL)
		check_size(VARSIZE_ANY_EXHDR(error), "error", MAX_ERROR_LENGTH);
	return error;
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
static bool
interval_before(const Interval *a, const Interval *b)
{
	return DatumGetBool(DirectFunctionCall2(interval_lt,
											IntervalPGetDatum(a),
											IntervalPGetDatum(b)));
}

void
check_not_negative(const Interval *interval, const char *argument)
{
	Interval	zero;

	memset(&zero, 0, sizeof(zero));
	if (interval_before(interval, &zero))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be negative", argument)));
}

TimestampTz
moment_after(TimestampTz moment, const Interval *interval)
{
	return DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
												   TimestampTzGetDatum(moment),
												   IntervalPGetDatum(interval)));
}

TimestampTz
moment_before(TimestampTz moment, const Interval *interval)
{
	return DatumGetTimestampTz(DirectFunctionCall2(timestamptz_mi_interval,
												   TimestampTzGetDatum(moment),
												   IntervalPGetDatum(interval)));
}

static void
check_finite(TimestampTz moment, const char *argument)
{
	if (TIMESTAMP_NOT_FINITE(moment))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be finite", argument)));
}

/*
 * A retention period is greater than zero and ends some day.
 */
void
check_retention(const Interval *retention, const char *argument)
{
	Interval	zero;

	memset(&zero, 0, sizeof(zero));
	if (!interval_before(&zero, retention))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be greater than zero",
						argument)));
	check_finite(moment_after(GetCurrentTimestamp(), retention), argument);
}

/*
 * The moment at which a failed message is offered again, or DT_NOEND for
 * never.
 */
TimestampTz
arg_retry_at(const Interval *retry_after)
{
	TimestampTz retry_at;

	if (retry_after == NULL)
		return DT_NOEND;

	check_not_negative(retry_after, "retry_after");
	retry_at = moment_after(GetCurrentTimestamp(), retry_after);
	check_finite(retry_at, "retry_after");
	return retry_at;
}
