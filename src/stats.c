/*-------------------------------------------------------------------------
 *
 * stats.c
 *	  The SQL-callable functions that count messages and instances.
 *
 * They are made for being asked every few seconds.  What has not been
 * processed, or is open, is counted, by indexes that hold nothing else.
 * Counting what is done would take a walk through the whole table, so that is
 * estimated from the planner's statistics, and the columns say so.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "inbox.h"
#include "instance.h"
#include "message.h"
#include "sql.h"
#include "window.h"

/*
 * SQL: about how many rows of a table have which of the common values of a
 * column.  $1 is the OID of the schema.
 */
#define COMMON_VALUES(table, column) \
	"SELECT f.value" AS_C " AS value," \
	" (c.reltuples" TIMES "f.frequency)::pg_catalog.int8 AS row_count" \
	" FROM pg_catalog.pg_class c" \
	" JOIN pg_catalog.pg_namespace n ON n.oid" EQ "c.relnamespace" \
	" JOIN pg_catalog.pg_stats s ON s.schemaname" EQ "n.nspname" \
	" AND s.tablename" EQ "c.relname" \
	" CROSS JOIN LATERAL ROWS FROM (" \
	"pg_catalog.unnest(s.most_common_vals::pg_catalog.text::pg_catalog.text[])," \
	" pg_catalog.unnest(s.most_common_freqs)) AS f (value, frequency)" \
	" WHERE c.relnamespace" EQ "$1 AND c.relname" EQ "'" table "'" \
	" AND s.attname" EQ "'" column "' AND c.reltuples" GE "0"

/* a line for each declared type and each state, so that no series vanishes */
static const Statement message_stats = {
	"WITH counted AS (SELECT m.message_type" AS_C " AS message_type, m.state,"
	" pg_catalog.count(*) AS messages,"
	" pg_catalog.min(m.created_at) AS oldest"
	" FROM $inbox.sequenced_message m WHERE " MESSAGE_IS_UNPROCESSED
	" GROUP BY 1, 2),"
	" types AS (SELECT t.message_type"
	" FROM $inbox.message_type_declaration t"
	" UNION SELECT c.message_type FROM counted c),"
	" common AS (" COMMON_VALUES("sequenced_message", "message_type") ")"
	" SELECT t.message_type, s.state, COALESCE(c.messages, 0),"
	" CASE WHEN pg_catalog.isfinite(c.oldest)"
	" THEN pg_catalog.date_part('epoch', $2" MINUS "c.oldest) END, false"
	" FROM types t"
	" CROSS JOIN (VALUES ('" STATE_FAILED "'), ('" STATE_WAITING "'))"
	" AS s (state)"
	" LEFT JOIN counted c ON c.message_type" EQ "t.message_type"
	" AND c.state" EQ "s.state"
	" UNION ALL"
	" SELECT t.message_type, '" STATE_PROCESSED "',"
	" GREATEST(COALESCE(o.row_count, 0)" MINUS "("
	"SELECT COALESCE(pg_catalog.sum(c.messages), 0)::pg_catalog.int8"
	" FROM counted c WHERE c.message_type" EQ "t.message_type), 0),"
	" NULL, true"
	" FROM types t LEFT JOIN common o ON o.value" EQ "t.message_type"
	" ORDER BY 1, 2",
	2, {OIDOID, TIMESTAMPTZOID}
};

static const Statement instance_stats = {
	"WITH opened AS (SELECT i.name" AS_C " AS name,"
	" pg_catalog.count(*) AS instances,"
	" pg_catalog.count(*) FILTER (WHERE i.retain_until" GT "$2"
	" AND CASE WHEN pg_catalog.isfinite(i.retain_until)"
	" AND pg_catalog.isfinite(i.created_at) THEN ($2" MINUS "i.created_at)" GE
	"((i.retain_until" MINUS "i.created_at)" TIMES "0.75) END)"
	" AS expiring_soon,"
	" pg_catalog.count(*) FILTER (WHERE i.retain_until" LE "$2) AS expired"
	" FROM $inbox.sequence_instance i"
	" WHERE i.state" EQ "'" INSTANCE_OPEN "'"
	" GROUP BY 1),"
	" due AS (SELECT i.name" AS_C " AS name, pg_catalog.count(*) AS instances"
	" FROM $inbox.sequence_instance i WHERE i.release_due_at" LE "$2"
	" GROUP BY 1),"
	" dead AS (SELECT d.sequence_name" AS_C " AS name,"
	" pg_catalog.count(*) AS letters"
	" FROM $inbox.dead_letter d GROUP BY 1),"
	" names AS (SELECT s.name FROM $inbox.sequence_declaration s"
	" UNION SELECT o.name FROM opened o UNION SELECT d.name FROM dead d),"
	" common AS (" COMMON_VALUES("sequence_instance", "name") ")"
	" SELECT n.name, COALESCE(o.instances, 0), COALESCE(u.instances, 0),"
	" COALESCE(o.expiring_soon, 0), COALESCE(o.expired, 0),"
	" COALESCE(d.letters, 0),"
	" GREATEST(COALESCE(c.row_count, 0)" MINUS "COALESCE(o.instances, 0), 0)"
	" FROM names n"
	" LEFT JOIN opened o ON o.name" EQ "n.name"
	" LEFT JOIN due u ON u.name" EQ "n.name"
	" LEFT JOIN dead d ON d.name" EQ "n.name"
	" LEFT JOIN common c ON c.value" EQ "n.name"
	" WHERE n.name" NE "'" WINDOW_SEQUENCE "'"
	" ORDER BY 1",
	2, {OIDOID, TIMESTAMPTZOID}
};

static Datum
return_rows(FunctionCallInfo fcinfo, const Statement *statement)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid			inbox = inbox_in_use();
	Datum		values[2];
	uint64		rows;

	InitMaterializedSRF_compat(fcinfo);
	values[0] = ObjectIdGetDatum(inbox);
	values[1] = TimestampTzGetDatum(GetCurrentTimestamp());

	SPI_connect();
	rows = statement_run(inbox, statement, values, NULL);
	statement_check_types(result->setDesc);
	for (uint64 row = 0; row < rows; row++)
		tuplestore_puttuple(result->setResult, SPI_tuptable->vals[row]);
	SPI_finish();

	return (Datum) 0;
}

PG_FUNCTION_INFO_V1(seqinbox_message_stats);
Datum
seqinbox_message_stats(PG_FUNCTION_ARGS)
{
	return return_rows(fcinfo, &message_stats);
}

PG_FUNCTION_INFO_V1(seqinbox_instance_stats);
Datum
seqinbox_instance_stats(PG_FUNCTION_ARGS)
{
	return return_rows(fcinfo, &instance_stats);
}
