/*-------------------------------------------------------------------------
 *
 * owner.c
 *	  Acts as the owner of an inbox's tables.
 *
 * A table's triggers are its owner's code.  What a superuser does of its own
 * accord to the tables of others, be it the background worker or whoever
 * calls the housekeeping, is therefore done as their owner, in a
 * security-restricted operation, from which there is no way back to the
 * superuser.  The server refuses to defer triggers there, so none of it runs
 * later.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "inbox.h"
#include "layout.h"
#include "owner.h"
#include "sql.h"

/*
 * SQL: may a role act as the owner of the claim table c anyway?  6171 is
 * pg_database_owner, of which the database's owner is a member.
 */
#define MAY_BE_OWNER(role) \
	"pg_catalog.pg_has_role(CASE WHEN " role EQ "6171" \
	" THEN d.datdba ELSE " role " END, c.relowner, 'MEMBER')"

static char *
names_of_tables(void)
{
	StringInfoData names;

	initStringInfo(&names);
	for (int i = 0; i < inbox_layout_count; i++)
		appendStringInfo(&names, "%s'%s'", i > 0 ? ", " : "",
						 inbox_layout[i].name);
	return names.data;
}

/*
 * SQL: schema, owner and schema's name of each inbox of the database, and
 * whether its owner may be acted as; more conditions can follow.
 *
 * Whoever owns the schema or one of the tables can attach code to it.  Where
 * that is a role that could not act as the owner, nothing is run as the owner.
 */
const char *
owner_query(void)
{
	return psprintf("SELECT c.relnamespace, c.relowner, "
					MAY_BE_OWNER("n.nspowner")
					" AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_class t"
					" WHERE t.relnamespace" EQ "c.relnamespace"
					" AND t.relname" EQ "ANY (ARRAY[%s]::pg_catalog.name[])"
					" AND NOT " MAY_BE_OWNER("t.relowner") "), n.nspname"
					" FROM pg_catalog.pg_class c"
					" JOIN pg_catalog.pg_namespace n ON n.oid" EQ "c.relnamespace"
					" JOIN pg_catalog.pg_database d"
					" ON d.datname" EQ "pg_catalog.current_database()"
					" WHERE c.relname" EQ "'" CLAIM_TABLE "'"
					" AND (c.relkind" EQ "'r' OR c.relkind" EQ "'p')"
					" AND c.relpersistence" NE "'t'", names_of_tables());
}

void
owner_untrusted(int elevel, const char *inbox_name)
{
	ereport(elevel,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("housekeeping passes over inbox \"%s\"", inbox_name),
			 errdetail("Its schema or one of its tables belongs to a role that is no member of the owner of table \"%s\".",
					   CLAIM_TABLE)));
}

/*
 * The role as which a superuser does the housekeeping of an inbox; anybody
 * else does it as who they are.
 */
Oid
owner_for_housekeeping(Oid inbox)
{
	Oid			argtypes[1] = {OIDOID};
	Datum		values[1] = {ObjectIdGetDatum(inbox)};
	Datum		value;

	if (!superuser())
		return GetUserId();
	if (SPI_execute_with_args(psprintf("%s AND c.relnamespace" EQ "$1",
									   owner_query()),
							  1, argtypes, values, NULL, false,
							  1) != SPI_OK_SELECT)
		elog(ERROR, "could not look for the owner of the inbox");
	if (SPI_processed == 0 ||
		!statement_get_from(0, 3, BOOLOID, &value) || !DatumGetBool(value))
		owner_untrusted(ERROR, get_namespace_name(inbox));
	(void) statement_get_from(0, 2, OIDOID, &value);
	return DatumGetObjectId(value);
}

void
act_as(Oid owner, Acting *acting)
{
	GetUserIdAndSecContext(&acting->user, &acting->security);
	SetUserIdAndSecContext(owner,
						   acting->security | SECURITY_RESTRICTED_OPERATION);
	acting->settings = NewGUCNestLevel();
}

/*
 * Takes back the settings that the owner's code has changed.
 */
void
end_settings(const Acting *acting)
{
	AtEOXact_GUC(false, acting->settings);
}

void
act_as_before(const Acting *acting)
{
	SetUserIdAndSecContext(acting->user, acting->security);
}
