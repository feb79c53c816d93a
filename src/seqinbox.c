/*-------------------------------------------------------------------------
 *
 * seqinbox.c
 *	  Loads the module and defines its settings.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "compat.h"
#include "idle.h"
#include "inbox.h"
#include "window.h"
#include "worker.h"

PG_MODULE_MAGIC;

#define SECONDS_PER_WEEK (7 * 24 * 60 * 60)
#define TEN_MINUTES_IN_MS (10 * 60 * 1000)
#define SECONDS_PER_HOUR (60 * 60)

PGDLLEXPORT void _PG_init(void);

/*
 * What only the workers need, which run only when the library is preloaded.
 */
static void
define_housekeeping(void)
{
	DefineCustomStringVariable("seqinbox.housekeeping_databases",
							   "Databases whose inboxes the background worker keeps clean.",
							   "Names, with commas between them.",
							   &housekeeping_databases,
							   "",
							   PGC_SIGHUP,
							   GUC_LIST_INPUT,
							   NULL,
							   NULL,
							   NULL);

	DefineCustomIntVariable("seqinbox.housekeeping_interval",
							"How long from one housekeeping to the next.",
							NULL,
							&housekeeping_interval,
							SECONDS_PER_HOUR,
							1,
							INT_MAX / 1000,
							PGC_SIGHUP,
							GUC_UNIT_S,
							NULL,
							NULL,
							NULL);

	worker_register_launcher();
}

void
_PG_init(void)
{
	DefineCustomIntVariable("seqinbox.idempotence_retention",
							"How long a claim without sequencing answers duplicates at the least.",
							NULL,
							&idempotence_retention,
							SECONDS_PER_WEEK,
							1,
							INT_MAX,
							PGC_USERSET,
							GUC_UNIT_S,
							NULL,
							NULL,
							NULL);

	DefineCustomIntVariable("seqinbox.idle_timeout",
							"How long a transaction that holds a claim may be idle.",
							"Zero turns this off.",
							&idle_timeout,
							TEN_MINUTES_IN_MS,
							0,
							INT_MAX,
							PGC_USERSET,
							GUC_UNIT_MS,
							NULL,
							NULL,
							NULL);

	if (process_shared_preload_libraries_in_progress)
		define_housekeeping();

	MarkGUCPrefixReserved_compat("seqinbox");
	inbox_init();
}

PG_FUNCTION_INFO_V1(seqinbox_version);
Datum
seqinbox_version(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_TEXT_P(cstring_to_text(SEQINBOX_VERSION));
}
