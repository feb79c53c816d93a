/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  The background workers that do the housekeeping.
 *
 * A launcher runs all the time.  At each interval it starts a worker for each
 * database, one after the other, which walks through all inboxes there and
 * ends.  A new database or inbox is found by the next walk.
 *
 * The workers are superusers, so the housekeeping of an inbox runs as the
 * owner of its claim table.  Settings that it changes end with the turn: the
 * next inbox may have another owner.  One inbox cannot keep the others
 * waiting for long: neither for a lock, nor for its triggers.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"
#include "utils/varlena.h"

#include "args.h"
#include "compat.h"
#include "housekeeping.h"
#include "inbox.h"
#include "owner.h"
#include "worker.h"

#define LIBRARY "seqinbox"
#define LAUNCHER_RESTART_SECONDS 10

/* as the defaults of seqinbox_housekeeping() */
#define BATCH_SIZE 1000
#define MAX_DURATION_MS (INT64CONST(15) * 60 * 1000)

/* where the server's settings set no limit for all */
#define LOCK_TIMEOUT "10s"
#define TURN_TIMEOUT_MS (10 * 60 * 1000)

typedef struct FoundInbox
{
	Oid			schema;
	char	   *name;
	Oid			owner;
} FoundInbox;

char	   *housekeeping_databases;
int			housekeeping_interval;

PGDLLEXPORT void seqinbox_launcher_main(Datum arg);
PGDLLEXPORT void seqinbox_worker_main(Datum arg);

static void
fill_worker(BackgroundWorker *worker, const char *function, const char *type)
{
	memset(worker, 0, sizeof(*worker));
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker->bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker->bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker->bgw_library_name, LIBRARY,
			sizeof(worker->bgw_library_name));
	strlcpy(worker->bgw_function_name, function,
			sizeof(worker->bgw_function_name));
	strlcpy(worker->bgw_type, type, sizeof(worker->bgw_type));
	strlcpy(worker->bgw_name, type, sizeof(worker->bgw_name));
}

void
worker_register_launcher(void)
{
	BackgroundWorker launcher;

	if (IsBinaryUpgrade)
		return;
	fill_worker(&launcher, "seqinbox_launcher_main",
				"seqinbox housekeeping launcher");
	launcher.bgw_restart_time = LAUNCHER_RESTART_SECONDS;
	RegisterBackgroundWorker(&launcher);
}

static void
set_up_signals(void)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
}

/*
 * Runs the housekeeping of one database to its end.
 */
static void
run_worker(const char *database)
{
	BackgroundWorker worker;
	BackgroundWorkerHandle *handle;
	pid_t		pid;

	fill_worker(&worker, "seqinbox_worker_main",
				"seqinbox housekeeping worker");
	snprintf(worker.bgw_name, sizeof(worker.bgw_name),
			 "seqinbox housekeeping worker for database %s", database);
	strlcpy(worker.bgw_extra, database, sizeof(worker.bgw_extra));
	worker.bgw_notify_pid = MyProcPid;

	if (!RegisterDynamicBackgroundWorker(&worker, &handle))
	{
		ereport(LOG,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("could not start a housekeeping worker for database \"%s\"",
						database),
				 errhint("You might need to increase max_worker_processes.")));
		return;
	}
	if (WaitForBackgroundWorkerStartup(handle, &pid) == BGWH_STARTED)
		(void) WaitForBackgroundWorkerShutdown(handle);
	pfree(handle);
}

static void
run_workers(void)
{
	char	   *names = pstrdup(housekeeping_databases);
	List	   *databases;
	ListCell   *lc;

	if (!SplitIdentifierString(names, ',', &databases))
	{
		ereport(LOG,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid list syntax in parameter \"%s\"",
						"seqinbox.housekeeping_databases")));
		return;
	}
	foreach(lc, databases)
		run_worker(lfirst(lc));
}

void
seqinbox_launcher_main(Datum arg pg_attribute_unused())
{
	MemoryContext context;
	TimestampTz last_start = 0;

	set_up_signals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	context = AllocSetContextCreate(TopMemoryContext, "seqinbox launcher",
									ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);

	for (;;)
	{
		TimestampTz next_start;
		long		wait;

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}

		next_start = TimestampTzPlusMilliseconds(last_start,
												 housekeeping_interval * INT64CONST(1000));
		wait = TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
											   next_start);
		if (wait <= 0)
		{
			last_start = GetCurrentTimestamp();
			run_workers();
			MemoryContextReset(context);
			continue;
		}
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 wait, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}

static char *
name_in_row(int row)
{
	Datum		value;

	(void) statement_get_from(row, 4, NAMEOID, &value);
	return pstrdup(NameStr(*DatumGetName(value)));
}

/*
 * All inboxes of the database whose owner may be acted as, in memory that
 * outlives the transaction.
 */
static FoundInbox *
find_inboxes(MemoryContext context, uint64 *count)
{
	FoundInbox *inboxes;
	char	   *query;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	SPI_connect();
	query = psprintf("%s ORDER BY c.relnamespace", owner_query());
	if (SPI_execute(query, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not look for inboxes");

	*count = 0;
	inboxes = MemoryContextAlloc(context,
								 sizeof(FoundInbox) * (SPI_processed + 1));
	for (uint64 row = 0; row < SPI_processed; row++)
	{
		Datum		value;

		if (!statement_get_from((int) row, 3, BOOLOID, &value) || !DatumGetBool(value))
		{
			owner_untrusted(LOG, name_in_row((int) row));
			continue;
		}
		(void) statement_get_from((int) row, 1, OIDOID, &value);
		inboxes[*count].schema = DatumGetObjectId(value);
		(void) statement_get_from((int) row, 2, OIDOID, &value);
		inboxes[*count].owner = DatumGetObjectId(value);
		inboxes[*count].name = MemoryContextStrdup(context,
												   name_in_row((int) row));
		(*count)++;
	}
	SPI_finish();
	PopActiveSnapshot();
	CommitTransactionCommand();
	return inboxes;
}

static bool
run_turn(const FoundInbox *inbox, HousekeepingRun *run)
{
	Acting		acting;
	bool		more;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	act_as(inbox->owner, &acting);
	enable_timeout_after(STATEMENT_TIMEOUT,
						 StatementTimeout > 0 ? StatementTimeout : TURN_TIMEOUT_MS);

	SPI_connect();
	more = housekeeping_turn(inbox->schema, run);
	SPI_finish();

	disable_timeout(STATEMENT_TIMEOUT, false);
	end_settings(&acting);
	PopActiveSnapshot();
	CommitTransactionCommand();
	act_as_before(&acting);
	return more;
}

static void
clean_inbox(const FoundInbox *inbox)
{
	static const Interval one_day = {0, 1, 0};
	HousekeepingOptions options = {&one_day, BATCH_SIZE, NULL};
	HousekeepingRun run;
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
													   MAX_DURATION_MS);

	housekeeping_begin(&run, &options);
	while (run_turn(inbox, &run) && GetCurrentTimestamp() < deadline)
		CHECK_FOR_INTERRUPTS();
	housekeeping_log(inbox->name, &run);
}

/*
 * An inbox that cannot be cleaned must not keep the others from it.
 */
static void
try_to_clean_inbox(const FoundInbox *inbox)
{
	MemoryContext context = CurrentMemoryContext;

	PG_TRY();
	{
		clean_inbox(inbox);
	}
	PG_CATCH();
	{
		disable_timeout(STATEMENT_TIMEOUT, false);
		QueryCancelPending = false;
		MemoryContextSwitchTo(context);
		EmitErrorReport();
		FlushErrorState();
		AbortCurrentTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
}

/*
 * What runs on the owners' tables finds nothing but by its full name.
 */
static void
set_up_settings(void)
{
	SetConfigOption("search_path", "pg_catalog, pg_temp",
					PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("default_transaction_isolation", "read committed",
					PGC_SUSET, PGC_S_OVERRIDE);
	if (LockTimeout == 0)
		SetConfigOption("lock_timeout", LOCK_TIMEOUT,
						PGC_SUSET, PGC_S_OVERRIDE);
}

void
seqinbox_worker_main(Datum arg pg_attribute_unused())
{
	MemoryContext context;
	FoundInbox *inboxes;
	uint64		count;

	set_up_signals();
	BackgroundWorkerInitializeConnection(MyBgworkerEntry->bgw_extra, NULL, 0);
	context = AllocSetContextCreate(TopMemoryContext, "seqinbox worker",
									ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);

	set_up_settings();
	pgstat_report_activity(STATE_RUNNING, "housekeeping of all inboxes");
	inboxes = find_inboxes(context, &count);
	for (uint64 i = 0; i < count; i++)
		try_to_clean_inbox(&inboxes[i]);
	pgstat_report_activity(STATE_IDLE, NULL);
	proc_exit(0);
}
