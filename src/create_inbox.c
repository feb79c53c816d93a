/*-------------------------------------------------------------------------
 *
 * create_inbox.c
 *	  Creates an inbox, adopts existing tables as one, and upgrades it.
 *
 * All three are the same: compare what is there with the layout, and create
 * what is missing.  Nothing that is there is changed, and a lock that blocks
 * writers is taken only where something is missing.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/catalog.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "optimizer/plancat.h"
#include "parser/parse_coerce.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/syscache.h"

#include "args.h"
#include "compat.h"
#include "inbox.h"
#include "layout.h"
#include "lock_wait.h"
#include "sql.h"
#include "window.h"

/* tables with fewer rows get a missing index at once */
#define SMALL_TABLE_ROWS 100000

/* how long to wait for the tables' locks at a time, and then to let others go */
#define LOCK_TRY "100ms"
#define PAUSE_BETWEEN_LOCK_TRIES (50 * 1000L)	/* microseconds */

typedef struct Setup
{
	Oid			schema;
	char	   *name;
	char	   *quoted_name;
	bool		changed;
	bool		new_instance_ids;	/* their sequence was created just now */
} Setup;

static void
run_sql(const char *sql)
{
	int			result = SPI_execute(sql, false, 0);

	if (result < 0)
		elog(ERROR, "could not run \"%s\": %s",
			 sql, SPI_result_code_string(result));
}

/*
 * Runs a command in whose text $inbox stands for the schema.  The schema's
 * name must not be in it already: it may be such that it would be replaced.
 */
static void
run_ddl(const Setup *setup, const char *text)
{
	run_sql(inbox_sql(setup->quoted_name, text));
}

static void
did(Setup *setup, const char *what, const char *name)
{
	setup->changed = true;
	ereport(NOTICE,
			(errmsg("created %s \"%s.%s\"", what, setup->name, name)));
}

static void
find_or_create_schema(Setup *setup)
{
	setup->schema = get_namespace_oid(setup->name, true);
	if (OidIsValid(setup->schema))
		return;

	run_ddl(setup, "CREATE SCHEMA $inbox");
	setup->schema = get_namespace_oid(setup->name, false);
	setup->changed = true;
	ereport(NOTICE,
			(errmsg("created schema \"%s\"", setup->name)));
}

/*
 * The OID of a table of the inbox, or InvalidOid.  Other relations of that
 * name are in the way.
 */
static Oid
find_relation(const Setup *setup, const char *name, bool sequence)
{
	Oid			relid = get_relname_relid(name, setup->schema);
	char		relkind;
	bool		fits;

	if (!OidIsValid(relid))
		return InvalidOid;
	relkind = get_rel_relkind(relid);
	if (sequence)
		fits = relkind == RELKIND_SEQUENCE;
	else
		fits = relkind == RELKIND_RELATION ||
			relkind == RELKIND_PARTITIONED_TABLE;
	if (!fits)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s.%s\" is not a %s", setup->name, name,
						sequence ? "sequence" : "table")));
	return relid;
}

static Oid
type_oid(const char *type)
{
	return DatumGetObjectId(DirectFunctionCall1(regtypein,
												CStringGetDatum(type)));
}

/*
 * Texts that differ in a byte are different messages, contexts or states.
 */
static bool
tells_all_texts_apart(Oid collation)
{
	return !OidIsValid(collation) || get_collation_isdeterministic(collation);
}

/*
 * Checks the columns that are there.  A type that is stored in the same way,
 * such as varchar for text, does as well.
 */
static void
check_columns(const Setup *setup, const TableLayout *table, Oid relid)
{
	for (int i = 0; i < table->column_count; i++)
	{
		const ColumnLayout *column = &table->columns[i];
		AttrNumber	attnum = get_attnum(relid, column->name);
		Oid			type;
		Oid			wanted;
		int32		typmod;
		Oid			collation;

		if (attnum == InvalidAttrNumber)
			continue;
		get_atttypetypmodcoll(relid, attnum, &type, &typmod, &collation);
		wanted = type_oid(column->type);
		if (!IsBinaryCoercible(type, wanted) ||
			!IsBinaryCoercible(wanted, type))
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("column \"%s\" of table \"%s.%s\" has an incompatible type",
							column->name, setup->name, table->name),
					 errdetail("It is of type %s; an inbox needs %s.",
							   format_type_be(type), format_type_be(wanted))));
		if (!tells_all_texts_apart(collation))
			ereport(ERROR,
					(errcode(ERRCODE_COLLATION_MISMATCH),
					 errmsg("column \"%s\" of table \"%s.%s\" has a nondeterministic collation",
							column->name, setup->name, table->name),
					 errdetail("Its collation \"%s\" takes texts that differ for equal, and an inbox must not.",
							   get_collation_name(collation)),
					 errhint("Change the column's collation.")));
	}
}

/*
 * An index may have another collation than its column.  A unique one then
 * stands in the way of a claim or an instance that isn't there yet.
 */
static void
check_unique_index(const Setup *setup, const TableLayout *table,
				   Relation index)
{
	if (!index->rd_index->indisunique)
		return;
	for (int i = 0; i < index->rd_index->indnkeyatts; i++)
	{
		Oid			collation = index->rd_indcollation[i];

		if (!tells_all_texts_apart(collation))
			ereport(ERROR,
					(errcode(ERRCODE_COLLATION_MISMATCH),
					 errmsg("unique index \"%s\" of table \"%s.%s\" has a nondeterministic collation",
							RelationGetRelationName(index), setup->name,
							table->name),
					 errdetail("Its collation \"%s\" takes texts that differ for equal, and an inbox must not.",
							   get_collation_name(collation)),
					 errhint("Drop the index, or create it with another collation.")));
	}
}

static void
check_unique_indexes(const Setup *setup, const TableLayout *table, Oid relid)
{
	Relation	rel = table_open(relid, AccessShareLock);
	List	   *oids = RelationGetIndexList(rel);
	ListCell   *lc;

	foreach(lc, oids)
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);

		check_unique_index(setup, table, index);
		index_close(index, AccessShareLock);
	}
	list_free(oids);
	table_close(rel, AccessShareLock);
}

/*
 * A sequence that is created for a table with rows continues after them.
 */
static void
create_sequence(Setup *setup, const TableLayout *table, bool table_exists,
				const char *sequence)
{
	int64		start = 1;
	char	   *text;

	if (table_exists)
	{
		Datum		max_id;

		text = psprintf("SELECT pg_catalog.max(t.id) FROM $inbox.%s t",
						table->name);
		run_ddl(setup, text);
		if (statement_get(1, INT8OID, &max_id))
			start = DatumGetInt64(max_id) + 1;
	}
	text = psprintf("CREATE SEQUENCE $inbox.%s START %lld",
					sequence, (long long) Max(start, 1));
	run_ddl(setup, text);
}

static void
find_or_create_sequences(Setup *setup, const TableLayout *table,
						 bool table_exists)
{
	for (int i = 0; i < table->column_count; i++)
	{
		const char *sequence = table->columns[i].sequence;

		if (sequence == NULL ||
			OidIsValid(find_relation(setup, sequence, true)))
			continue;
		create_sequence(setup, table, table_exists, sequence);
		if (strcmp(table->name, INSTANCE_TABLE) == 0)
			setup->new_instance_ids = true;
		if (table_exists)
			did(setup, "sequence", sequence);
	}
}

/*
 * The DEFAULT of a column, or NULL.
 */
static char *
default_expression(const Setup *setup, const ColumnLayout *column)
{
	if (column->sequence != NULL)
	{
		char	   *sequence = quote_qualified_identifier(setup->name,
														  column->sequence);

		return psprintf("pg_catalog.nextval(%s::pg_catalog.regclass)",
						quote_literal_cstr(sequence));
	}
	if (column->default_value != NULL)
		return pstrdup(column->default_value);
	return NULL;
}

static void
append_column(StringInfo ddl, const Setup *setup, const ColumnLayout *column)
{
	char	   *value = default_expression(setup, column);

	appendStringInfo(ddl, "%s %s", column->name, column->type);
	if (column->constraint != NULL)
		appendStringInfo(ddl, " %s", inbox_sql(setup->quoted_name,
											   column->constraint));
	if (value != NULL)
		appendStringInfo(ddl, " DEFAULT %s", value);
}

static void
append_keys(StringInfo ddl, const char *const *keys)
{
	for (int i = 0; i < MAX_INDEX_KEYS && keys[i] != NULL; i++)
		appendStringInfo(ddl, "%s%s", i > 0 ? ", " : "", keys[i]);
}

static char *
index_ddl(const TableLayout *table, const IndexLayout *index,
		  const char *concurrently)
{
	StringInfoData ddl;

	initStringInfo(&ddl);
	appendStringInfo(&ddl, "CREATE %sINDEX %s%s ON $inbox.%s (",
					 index->unique ? "UNIQUE " : "", concurrently,
					 index->name, table->name);
	append_keys(&ddl, index->keys);
	appendStringInfoChar(&ddl, ')');
	if (index->predicate != NULL)
		appendStringInfo(&ddl, " WHERE %s", index->predicate);
	return ddl.data;
}

static void
create_table(Setup *setup, const TableLayout *table)
{
	StringInfoData ddl;

	find_or_create_sequences(setup, table, false);

	initStringInfo(&ddl);
	appendStringInfo(&ddl, "CREATE TABLE %s.%s (",
					 setup->quoted_name, table->name);
	for (int i = 0; i < table->column_count; i++)
	{
		append_column(&ddl, setup, &table->columns[i]);
		appendStringInfoString(&ddl, ", ");
	}
	appendStringInfo(&ddl, "CONSTRAINT %s PRIMARY KEY (",
					 table->primary_key.name);
	append_keys(&ddl, table->primary_key.keys);
	appendStringInfoString(&ddl, "))");
	run_sql(ddl.data);

	for (int i = 0; i < table->index_count; i++)
		run_ddl(setup, index_ddl(table, &table->indexes[i], ""));
	did(setup, "table", table->name);
}

/*
 * Whether a column's default has to be set.  An identity column, or a default
 * of any other kind, stays.
 */
static bool
lacks_default(const ColumnLayout *column, Oid relid)
{
	HeapTuple	tuple;
	Form_pg_attribute attribute;
	bool		lacks;

	if (column->sequence == NULL && column->default_value == NULL)
		return false;
	tuple = SearchSysCacheAttName(relid, column->name);
	if (!HeapTupleIsValid(tuple))
		return false;
	attribute = (Form_pg_attribute) GETSTRUCT(tuple);
	lacks = !attribute->atthasdef && attribute->attidentity == '\0';
	ReleaseSysCache(tuple);
	return lacks;
}

/*
 * Adds all missing columns and defaults of a table in one command, so that
 * its lock is taken once, and not at all when nothing is missing.
 */
static void
complete_columns(Setup *setup, const TableLayout *table, Oid relid)
{
	StringInfoData ddl;
	const char *separator = "";

	initStringInfo(&ddl);
	appendStringInfo(&ddl, "ALTER TABLE %s.%s",
					 setup->quoted_name, table->name);
	for (int i = 0; i < table->column_count; i++)
	{
		const ColumnLayout *column = &table->columns[i];

		if (get_attnum(relid, column->name) == InvalidAttrNumber)
		{
			appendStringInfo(&ddl, "%s ADD COLUMN ", separator);
			append_column(&ddl, setup, column);
			ereport(NOTICE,
					(errmsg("added column \"%s\" to table \"%s.%s\"",
							column->name, setup->name, table->name)));
		}
		else if (lacks_default(column, relid))
		{
			appendStringInfo(&ddl, "%s ALTER COLUMN %s SET DEFAULT %s",
							 separator, column->name,
							 default_expression(setup, column));
			ereport(NOTICE,
					(errmsg("set the default of column \"%s\" of table \"%s.%s\"",
							column->name, setup->name, table->name)));
		}
		else
			continue;
		separator = ",";
	}
	if (*separator == '\0')
		return;
	run_sql(ddl.data);
	setup->changed = true;
}

/*
 * How many keys of an index are, in this order, the given columns.
 */
static int
matching_keys(Form_pg_index form, const char *const *keys)
{
	int			n;

	for (n = 0; n < MAX_INDEX_KEYS && keys[n] != NULL; n++)
	{
		if (n >= form->indnkeyatts ||
			form->indkey.values[n] != get_attnum(form->indrelid, keys[n]))
			return 0;
	}
	return n;
}

static bool
serves_as(Relation candidate, const IndexLayout *index)
{
	Form_pg_index form = candidate->rd_index;
	int			keys = matching_keys(form, index->keys);

	if (candidate->rd_rel->relam != BTREE_AM_OID || !form->indisvalid)
		return false;
	if (!heap_attisnull(candidate->rd_indextuple, Anum_pg_index_indpred, NULL))
		return index->predicate != NULL && keys > 0 &&
			strcmp(RelationGetRelationName(candidate), index->name) == 0;
	if (index->predicate != NULL)
		return matching_keys(form, index->equivalent) > 0;
	if (index->unique)
		return form->indisunique && form->indimmediate &&
			keys > 0 && keys == form->indnkeyatts;
	return keys > 0 || matching_keys(form, index->equivalent) > 0;
}

static bool
has_index(Relation rel, const IndexLayout *index)
{
	List	   *oids = RelationGetIndexList(rel);
	ListCell   *lc;
	bool		found = false;

	foreach(lc, oids)
	{
		Relation	candidate = index_open(lfirst_oid(lc), AccessShareLock);

		found = found || serves_as(candidate, index);
		index_close(candidate, AccessShareLock);
	}
	list_free(oids);
	return found;
}

static bool
is_small(Relation rel)
{
	BlockNumber pages;
	double		rows;
	double		all_visible;

	if (rel->rd_rel->relkind != RELKIND_RELATION)
		return false;
	estimate_rel_size(rel, NULL, &pages, &rows, &all_visible);
	return rows < SMALL_TABLE_ROWS;
}

/*
 * An index of a partitioned table cannot be built concurrently.
 */
static void
advise_index(const Setup *setup, const TableLayout *table,
			 const IndexLayout *index, bool partitioned, const char *reason)
{
	const char *option = partitioned ? "" : "CONCURRENTLY ";
	char	   *ddl = inbox_sql(setup->quoted_name,
								index_ddl(table, index, option));

	/* what claims and instances rely on cannot wait */
	ereport(index->unique ? ERROR : NOTICE,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("index \"%s\" of table \"%s.%s\" is missing",
					index->name, setup->name, table->name),
			 errdetail("%s", reason),
			 errhint("Run: %s;", ddl)));
}

/*
 * A missing index is built at once where the table is small.  On a big one
 * that would block its writers for long, and all works without, only slower.
 */
static void
complete_index(Setup *setup, const TableLayout *table,
			   const IndexLayout *index, Oid relid)
{
	Relation	rel = table_open(relid, AccessShareLock);
	bool		found = has_index(rel, index);
	bool		small = found || is_small(rel);
	bool		partitioned =
		rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;

	table_close(rel, NoLock);
	if (found)
		return;

	setup->changed = true;
	if (OidIsValid(get_relname_relid(index->name, setup->schema)))
		advise_index(setup, table, index, partitioned,
					 "A relation of that name exists and is no valid index for it; drop it first.");
	else if (!small)
		advise_index(setup, table, index, partitioned,
					 partitioned ?
					 "It was not built now because the table is partitioned." :
					 "It was not built now because the table is big.");
	else
	{
		run_ddl(setup, index_ddl(table, index, ""));
		did(setup, "index", index->name);
	}
}

static void
complete_table(Setup *setup, const TableLayout *table, Oid relid)
{
	find_or_create_sequences(setup, table, true);
	complete_columns(setup, table, relid);
	complete_index(setup, table, &table->primary_key, relid);
	for (int i = 0; i < table->index_count; i++)
		complete_index(setup, table, &table->indexes[i], relid);
}

/*
 * Whether a table lacks nothing that would be added to it now.
 */
static bool
is_complete(const TableLayout *table, Oid relid)
{
	Relation	rel;
	bool		complete;

	for (int i = 0; i < table->column_count; i++)
	{
		const ColumnLayout *column = &table->columns[i];

		if (get_attnum(relid, column->name) == InvalidAttrNumber ||
			lacks_default(column, relid))
			return false;
	}

	rel = table_open(relid, AccessShareLock);
	complete = has_index(rel, &table->primary_key) || !is_small(rel);
	for (int i = 0; complete && i < table->index_count; i++)
		complete = has_index(rel, &table->indexes[i]) || !is_small(rel);
	table_close(rel, AccessShareLock);
	return complete;
}

static void
lock_all(void *relids)
{
	ListCell   *lc;

	foreach(lc, (List *) relids)
		LockRelationOid(lfirst_oid(lc), AccessExclusiveLock);
}

/*
 * Waits until all tables are locked, or until the caller's lock_timeout.
 */
static void
wait_for_all(List *relids)
{
	TimestampTz give_up_at = DT_NOEND;

	if (LockTimeout > 0)
		give_up_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
												 LockTimeout);
	while (!lock_wait_at_most(LOCK_TRY, lock_all, relids))
	{
		CHECK_FOR_INTERRUPTS();
		if (GetCurrentTimestamp() >= give_up_at)
			ereport(ERROR,
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
					 errmsg("could not lock the tables of the inbox within lock_timeout")));
		pg_usleep(PAUSE_BETWEEN_LOCK_TRIES);
	}
}

/*
 * Programs that write into the tables lock them in one order or another, so
 * waiting for one table while holding another could end in a deadlock, and
 * the one that fails could be the program.  So all tables are locked together
 * or none, giving up long before deadlock_timeout, and the writers get on
 * between the tries.
 */
static void
lock_incomplete(const Setup *setup)
{
	List	   *relids = NIL;
	ListCell   *lc;
	bool		complete = true;

	for (int i = 0; i < inbox_layout_count; i++)
	{
		Oid			relid = find_relation(setup, inbox_layout[i].name, false);

		complete = complete && OidIsValid(relid) &&
			is_complete(&inbox_layout[i], relid);
		if (OidIsValid(relid))
			relids = lappend_oid(relids, relid);
	}
	if (complete)
		return;

	/* to whoever may not change a table, the first change will say so */
	foreach(lc, relids)
	{
		if (!pg_class_ownercheck_compat(lfirst_oid(lc), GetUserId()))
			return;
	}
	wait_for_all(relids);
}

/*
 * With wal_level = minimal, the server does not log what is drawn from a
 * sequence in the transaction that created it, but goes on as if it had
 * logged the next values as well; after a crash it would give them again.
 * Setting the sequence makes it log the next draw.
 */
static void
log_instance_ids(const Setup *setup)
{
	if (setup->new_instance_ids)
		run_ddl(setup, "SELECT pg_catalog.setval(c.oid::pg_catalog.regclass, s.last_value)"
				" FROM $inbox." INSTANCE_SEQUENCE " s"
				" JOIN pg_catalog.pg_class c ON c.oid" EQ "s.tableoid");
}

/*
 * Only one session at a time may set up inboxes of a database.  What makes
 * them all meet is the extension itself.
 */
static void
lock_setup(void)
{
	LockDatabaseObject(ExtensionRelationId,
					   get_extension_oid("seqinbox", true), 0,
					   ShareUpdateExclusiveLock);
}

PG_FUNCTION_INFO_V1(seqinbox_create_inbox);
Datum
seqinbox_create_inbox(PG_FUNCTION_ARGS)
{
	Setup		setup;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", "inbox_schema"),
				 errhint("Name a schema; search_path has none that exists.")));
	PreventCommandIfReadOnly("seqinbox_create_inbox()");
	memset(&setup, 0, sizeof(setup));
	setup.name = pstrdup(NameStr(*PG_GETARG_NAME(0)));
	setup.quoted_name = pstrdup(quote_identifier(setup.name));

	if (setup.name[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be empty", "inbox_schema")));
	if (IsReservedName(setup.name) ||
		strcmp(setup.name, "information_schema") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_RESERVED_NAME),
				 errmsg("schema \"%s\" cannot be an inbox", setup.name),
				 errdetail("The name belongs to the system.")));

	lock_setup();
	SPI_connect();

	find_or_create_schema(&setup);
	for (int i = 0; i < inbox_layout_count; i++)
	{
		Oid			relid = find_relation(&setup, inbox_layout[i].name, false);

		if (!OidIsValid(relid))
			continue;
		check_columns(&setup, &inbox_layout[i], relid);
		check_unique_indexes(&setup, &inbox_layout[i], relid);
	}
	lock_incomplete(&setup);
	for (int i = 0; i < inbox_layout_count; i++)
	{
		Oid			relid = find_relation(&setup, inbox_layout[i].name, false);

		if (OidIsValid(relid))
			complete_table(&setup, &inbox_layout[i], relid);
		else
			create_table(&setup, &inbox_layout[i]);
	}
	if (!setup.changed)
		ereport(NOTICE,
				(errmsg("inbox \"%s\" is complete", setup.name)));

	windows_make_ahead(setup.schema);
	log_instance_ids(&setup);
	SPI_finish();
	PG_RETURN_VOID();
}
