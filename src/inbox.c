/*-------------------------------------------------------------------------
 *
 * inbox.c
 *	  Finds the inbox that a call uses and keeps the plans of its statements.
 *
 * An inbox is a schema, known by its OID.  Plans are saved per backend, under
 * the schema and the statement, and live in CacheMemoryContext.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "nodes/parsenodes.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "compat.h"
#include "inbox.h"

#define INBOX_MARK "$inbox"
#define MAX_SEARCH_PATH 64

typedef struct PlanKey
{
	Oid			inbox;
	const Statement *statement;
} PlanKey;

typedef struct PlanEntry
{
	PlanKey		key;
	NameData	schema;			/* the name that is written in the plan */
	SPIPlanPtr	plan;
} PlanEntry;

static HTAB *plans = NULL;

/* set by the invalidation callback, which may do no more than that */
static bool schemas_changed = false;

/*
 * Plans that are no longer wanted.  A trigger can call us while one of our
 * plans runs, so they are freed when none runs.
 */
static List *retired = NIL;
static int	running = 0;

static bool read_latest = false;

static void
mark_schemas_changed(Datum arg pg_attribute_unused(),
					 int cacheid pg_attribute_unused(),
					 uint32 hashvalue pg_attribute_unused())
{
	schemas_changed = true;
}

void
inbox_init(void)
{
	HASHCTL		ctl;

	memset(&ctl, 0, sizeof(ctl));
	ctl.keysize = sizeof(PlanKey);
	ctl.entrysize = sizeof(PlanEntry);
	ctl.hcxt = CacheMemoryContext;
	plans = hash_create("seqinbox plans", 64, &ctl,
						HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);

	CacheRegisterSyscacheCallback(NAMESPACEOID, mark_schemas_changed,
								  (Datum) 0);
}

static bool
holds_claim_table(Oid schema)
{
	Oid			relid = get_relname_relid(CLAIM_TABLE, schema);
	char		relkind;

	if (!OidIsValid(relid))
		return false;
	relkind = get_rel_relkind(relid);
	return relkind == RELKIND_RELATION || relkind == RELKIND_PARTITIONED_TABLE;
}

/*
 * The first schema of the search path that holds the claim table.  The
 * session's temporary schema is never one: fetch_search_path_array() leaves
 * it out, even where the path names it.
 */
Oid
inbox_in_use(void)
{
	Oid			few[MAX_SEARCH_PATH];
	Oid		   *path = few;
	int			length;

	/* an error may have kept a call before this one from doing so */
	read_latest = false;

	length = fetch_search_path_array(few, MAX_SEARCH_PATH);
	if (length > MAX_SEARCH_PATH)
	{
		path = palloc(length * sizeof(Oid));
		length = fetch_search_path_array(path, length);
	}

	for (int i = 0; i < length; i++)
	{
		if (holds_claim_table(path[i]))
			return path[i];
	}

	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_TABLE),
			 errmsg("there is no inbox in the search path"),
			 errdetail("No schema of search_path \"%s\" that you may use holds a table \"%s\".",
					   namespace_search_path, CLAIM_TABLE),
			 errhint("Run seqinbox_create_inbox() to create an inbox, or set search_path to the schema of one.")));
	return InvalidOid;			/* keep compiler quiet */
}

/*
 * Writes the schema into a statement's text.
 */
char *
inbox_sql(const char *quoted_schema, const char *text)
{
	StringInfoData sql;
	const char *mark;

	initStringInfo(&sql);
	while ((mark = strstr(text, INBOX_MARK)) != NULL)
	{
		appendBinaryStringInfo(&sql, text, mark - text);
		appendStringInfoString(&sql, quoted_schema);
		text = mark + strlen(INBOX_MARK);
	}
	appendStringInfoString(&sql, text);
	return sql.data;
}

static void
free_retired(void)
{
	ListCell   *lc;

	foreach(lc, retired)
		SPI_freeplan((SPIPlanPtr) lfirst(lc));
	list_free(retired);
	retired = NIL;
}

static void
retire(SPIPlanPtr plan)
{
	MemoryContext old = MemoryContextSwitchTo(CacheMemoryContext);

	retired = lappend(retired, plan);
	MemoryContextSwitchTo(old);
}

/*
 * Drops the plans of schemas that were renamed or dropped.  The text of such
 * a plan names another schema, or none.
 */
static void
forget_changed_schemas(void)
{
	HASH_SEQ_STATUS scan;
	PlanEntry  *entry;

	schemas_changed = false;
	hash_seq_init(&scan, plans);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		char	   *name = get_namespace_name(entry->key.inbox);

		if (name == NULL || strcmp(name, NameStr(entry->schema)) != 0)
		{
			retire(entry->plan);
			hash_search(plans, &entry->key, HASH_REMOVE, NULL);
		}
		if (name != NULL)
			pfree(name);
	}
}

static void
set_for_planning(const char *setting)
{
	(void) set_config_option(setting, "off",
							 PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

/*
 * A plan outlives the moment at which a table was small, and a sequential
 * scan chosen then would be slow later.  So the plan is made once, for any
 * parameters, with sequential scans discouraged.  Where one is needed all the
 * same, it then looks so expensive that it would be compiled each time.
 *
 * Nor does a bitmap help: most statements look for one row, and stop there.
 */
static void
plan_for_big_tables(SPIPlanPtr plan)
{
	int			level = NewGUCNestLevel();
	CachedPlan *cached;

	set_for_planning("enable_seqscan");
	set_for_planning("enable_bitmapscan");
	set_for_planning("jit");
	cached = SPI_plan_get_cached_plan(plan);
	if (cached != NULL)
		ReleaseCachedPlan_compat(cached);
	AtEOXact_GUC(true, level);
}

static SPIPlanPtr
prepare(const char *schema, const Statement *statement)
{
	char	   *sql = inbox_sql(quote_identifier(schema), statement->text);
	SPIPlanPtr	plan;

	plan = SPI_prepare_cursor(sql, statement->nargs,
							  unconstify(Statement *, statement)->argtypes,
							  CURSOR_OPT_GENERIC_PLAN);
	if (plan == NULL)
		elog(ERROR, "could not prepare \"%s\": %s",
			 sql, SPI_result_code_string(SPI_result));
	if (SPI_keepplan(plan) != 0)
		elog(ERROR, "could not keep the plan of \"%s\"", sql);

	PG_TRY();
	{
		plan_for_big_tables(plan);
	}
	PG_CATCH();
	{
		SPI_freeplan(plan);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return plan;
}

static SPIPlanPtr
saved_plan(Oid inbox, const Statement *statement)
{
	PlanKey		key;
	PlanEntry  *entry;
	SPIPlanPtr	plan;
	SPIPlanPtr	stale = NULL;
	char	   *schema;

	if (schemas_changed)
		forget_changed_schemas();
	if (retired != NIL && running == 0)
		free_retired();

	memset(&key, 0, sizeof(key));
	key.inbox = inbox;
	key.statement = statement;

	entry = hash_search(plans, &key, HASH_FIND, NULL);
	if (entry != NULL)
	{
		if (SPI_plan_is_valid(entry->plan))
			return entry->plan;
		stale = entry->plan;
	}

	schema = get_namespace_name(inbox);
	if (schema == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_SCHEMA),
				 errmsg("the schema of the inbox was dropped")));

	/* publish the plan only when nothing can fail any more */
	plan = prepare(schema, statement);
	entry = hash_search(plans, &key, HASH_ENTER, NULL);
	namestrcpy(&entry->schema, schema);
	entry->plan = plan;
	if (stale != NULL)
		retire(stale);
	return plan;
}

static int
run_plan(SPIPlanPtr plan, Datum *values, const char *nulls)
{
	int			result;

	running++;
	PG_TRY();
	{
		if (read_latest && IsolationUsesXactSnapshot())
			result = SPI_execute_snapshot(plan, values, nulls,
										  GetLatestSnapshot(),
										  InvalidSnapshot, false, true, 0);
		else
			result = SPI_execute_plan(plan, values, nulls, false, 0);
	}
	PG_FINALLY();
	{
		running--;
	}
	PG_END_TRY();
	return result;
}

/*
 * In a transaction that keeps one snapshot, lets statements see what has been
 * committed since, as they do in READ COMMITTED.
 *
 * This is for what must not be missed: others rely on it to be seen by
 * whoever gets the lock after them.  What is handed to the application is
 * still chosen by the transaction's own snapshot, since its handler sees no
 * more than that.
 */
void
statements_read_latest(bool latest)
{
	read_latest = latest;
}

/*
 * Runs a statement and returns the number of rows that it returned or wrote.
 * Its rows are in SPI_tuptable.
 *
 * Never read-only: a statement has to see what the ones before it wrote, and
 * in READ COMMITTED what others have committed since.
 */
uint64
statement_run(Oid inbox, const Statement *statement,
			  Datum *values, const char *nulls)
{
	int			result;

	/* one call may run any number of statements */
	if (SPI_tuptable != NULL)
		SPI_freetuptable(SPI_tuptable);

	result = run_plan(saved_plan(inbox, statement), values, nulls);
	if (result < 0)
		elog(ERROR, "could not run \"%s\": %s",
			 statement->text, SPI_result_code_string(result));
	return SPI_processed;
}

/*
 * The tables are whoever's who owns them, and may be made, or changed, just
 * to have us take a number for a pointer.  So each value is read as the type
 * that its column has in this very result.
 */
static bool
is_read_as(Oid type, Oid wanted)
{
	Oid			element;
	Oid			wanted_element;

	if (type == wanted || IsBinaryCoercible(type, wanted))
		return true;
	element = get_element_type(type);
	wanted_element = get_element_type(wanted);
	return OidIsValid(element) && OidIsValid(wanted_element) &&
		IsBinaryCoercible(element, wanted_element);
}

static void
check_type(int column, Oid wanted)
{
	Oid			type = SPI_gettypeid(SPI_tuptable->tupdesc, column);

	if (!is_read_as(type, wanted))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of a table of the inbox has an incompatible type",
						SPI_fname(SPI_tuptable->tupdesc, column)),
				 errdetail("It is of type %s; an inbox needs %s.",
						   format_type_be(type), format_type_be(wanted))));
}

/*
 * The rows are about to be returned as they are.
 */
void
statement_check_types(TupleDesc wanted)
{
	if (SPI_tuptable->tupdesc->natts != wanted->natts)
		elog(ERROR, "statement returned %d columns instead of %d",
			 SPI_tuptable->tupdesc->natts, wanted->natts);
	for (int i = 0; i < wanted->natts; i++)
		check_type(i + 1, TupleDescAttr(wanted, i)->atttypid);
}

/*
 * A column, counted from 1, of the first row of the statement that ran last.
 * False when it is null.  The value is gone when the next statement runs.
 */
bool
statement_get(int column, Oid type, Datum *value)
{
	return statement_get_from(0, column, type, value);
}

/*
 * The same of any row, counted from 0.
 */
bool
statement_get_from(int row, int column, Oid type, Datum *value)
{
	bool		isnull;

	if (SPI_tuptable == NULL || (uint64) row >= SPI_tuptable->numvals)
		elog(ERROR, "statement returned no row");
	check_type(column, type);
	*value = SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc,
						   column, &isnull);
	return !isnull;
}

/*
 * A text of the first row, copied; NULL when it is null.
 */
text *
statement_get_text(int column)
{
	Datum		value;

	return statement_get(column, TEXTOID, &value) ?
		DatumGetTextPCopy(value) : NULL;
}

/*
 * The ID that a statement returned, the first column of a row.
 */
int64
statement_get_id(int row)
{
	Datum		id;

	if (!statement_get_from(row, 1, INT8OID, &id))
		elog(ERROR, "statement returned no id");
	return DatumGetInt64(id);
}
