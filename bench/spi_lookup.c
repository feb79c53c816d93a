/*-------------------------------------------------------------------------
 *
 * spi_lookup.c
 *	  A bare look-up of a claim by its primary key through SPI, with a saved
 *	  plan: what try_claim of a duplicate is measured against.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"

PG_MODULE_MAGIC;

static SPIPlanPtr plan = NULL;

PG_FUNCTION_INFO_V1(spi_lookup);
Datum
spi_lookup(PG_FUNCTION_ARGS)
{
	Datum		values[2] = {PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)};
	bool		found;

	SPI_connect();
	if (plan == NULL)
	{
		Oid			argtypes[2] = {TEXTOID, TEXTOID};

		plan = SPI_prepare_cursor("SELECT 1 FROM sequential_inbox_idempotence"
								  " WHERE message_type = $1"
								  " AND idempotence_id = $2",
								  2, argtypes, CURSOR_OPT_GENERIC_PLAN);
		if (plan == NULL || SPI_keepplan(plan) != 0)
			elog(ERROR, "could not prepare the look-up");
	}
	found = SPI_execute_plan(plan, values, NULL, false, 0) == SPI_OK_SELECT &&
		SPI_processed > 0;
	SPI_finish();

	PG_RETURN_BOOL(found);
}
