/*-------------------------------------------------------------------------
 *
 * args.h
 *	  Reading and checking the arguments of SQL-callable functions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_ARGS_H
#define SEQINBOX_ARGS_H

#include "fmgr.h"
#include "utils/timestamp.h"

#include "compat.h"

/* in bytes; type and ID together must fit into one index entry */
#define MAX_TYPE_LENGTH 512
#define MAX_ID_LENGTH 2048

/* in bytes; a sentence, not a document */
#define MAX_REASON_LENGTH 8192

/*
 * In bytes.  A message is handed out as one row, and becomes one row as a
 * dead letter, which also holds the error.  The server cannot make a row of
 * 1 GB.
 */
#define MAX_MESSAGE_SIZE (256 * 1024 * 1024)
#define MAX_ERROR_LENGTH (64 * 1024 * 1024)

/* an argument that may be NULL, which then is a null pointer */
#define ARG_TEXT(n) (PG_ARGISNULL(n) ? NULL : PG_GETARG_TEXT_PP(n))
#define ARG_BYTEA(n) (PG_ARGISNULL(n) ? NULL : PG_GETARG_BYTEA_PP(n))
#define ARG_ARRAY(n) (PG_ARGISNULL(n) ? NULL : PG_GETARG_ARRAYTYPE_P(n))
#define ARG_UUID(n) (PG_ARGISNULL(n) ? NULL : PG_GETARG_UUID_P(n))
#define ARG_INTERVAL(n) (PG_ARGISNULL(n) ? NULL : PG_GETARG_INTERVAL_P(n))

pg_noreturn_compat extern void null_argument(const char *argument);
extern void check_name(const text *value, const char *argument,
					   int max_length);
extern text *arg_name(FunctionCallInfo fcinfo, int n, const char *argument,
					  int max_length);
extern void check_size(int64 size, const char *what, int limit);
extern text *arg_error(FunctionCallInfo fcinfo, int n);
extern int64 arg_id(FunctionCallInfo fcinfo, int n, const char *argument);

extern void check_not_negative(const Interval *interval,
							   const char *argument);
extern void check_retention(const Interval *retention, const char *argument);
extern TimestampTz moment_after(TimestampTz moment, const Interval *interval);
extern TimestampTz moment_before(TimestampTz moment, const Interval *interval);
extern TimestampTz arg_retry_at(const Interval *retry_after);

#endif							/* SEQINBOX_ARGS_H */
