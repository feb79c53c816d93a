/*-------------------------------------------------------------------------
 *
 * grant.c
 *	  The SQL-callable function that grants rights on an inbox.
 *
 * All functions run with the rights of their caller, so a role needs rights
 * on the tables.  What is granted here is what the statements of each group
 * of functions need, and no more.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "args.h"
#include "inbox.h"
#include "sql.h"

/* who takes in and handles messages, who steps in, who only looks */
#define CONSUMER 1
#define OPERATOR 2
#define OBSERVER 4
#define EVERYONE (CONSUMER | OPERATOR | OBSERVER)
#define WORKING (CONSUMER | OPERATOR)

typedef struct Grant
{
	int			groups;
	const char *rights;
	const char *object;
} Grant;

/*
 * Locking a row, also only FOR KEY SHARE, takes the right to update.  Whoever
 * calls seqinbox_next() may have to carry out a pending CLOSE, which makes
 * dead letters.
 */
static const Grant grants[] = {
	{EVERYONE, "USAGE", "SCHEMA $inbox"},
	{EVERYONE, "SELECT", "$inbox.sequence_instance"},
	{CONSUMER, "INSERT, UPDATE (state, closed_at, pending_action,"
	" release_due_at)", "$inbox.sequence_instance"},
	{OPERATOR, "INSERT, UPDATE, DELETE", "$inbox.sequence_instance"},
	{EVERYONE, "SELECT", "$inbox.sequenced_message"},
	{WORKING, "INSERT, UPDATE, DELETE", "$inbox.sequenced_message"},
	{WORKING, "SELECT, INSERT, DELETE", "$inbox." CLAIM_TABLE},
	{WORKING, "SELECT, INSERT, DELETE", "$inbox.buffered_message"},
	{WORKING, "SELECT, INSERT, DELETE", "$inbox.message_header"},
	{EVERYONE, "SELECT", "$inbox.sequence_declaration"},
	{OPERATOR, "INSERT, UPDATE", "$inbox.sequence_declaration"},
	{EVERYONE, "SELECT", "$inbox.message_type_declaration"},
	{OPERATOR, "INSERT, DELETE", "$inbox.message_type_declaration"},
	{CONSUMER, "SELECT (id), INSERT", "$inbox.dead_letter"},
	{OPERATOR, "SELECT, INSERT, UPDATE, DELETE", "$inbox.dead_letter"},
	{OBSERVER, "SELECT (id, sequence_name, context_id, message_type,"
		" cluster_name, topic, sequenced_message_id, idempotence_id, state,"
		" created_at, attempts, last_error, reason, removed_at,"
	" payload_buffered)", "$inbox.dead_letter"},
	{WORKING, "USAGE", "SEQUENCE $inbox.sequence_instance_sequence"},
	{WORKING, "USAGE", "SEQUENCE $inbox.sequenced_message_sequence"},
	{WORKING, "USAGE", "SEQUENCE $inbox.buffered_message_sequence"},
	{WORKING, "USAGE", "SEQUENCE $inbox.message_header_sequence"},
	{WORKING, "USAGE", "SEQUENCE $inbox.dead_letter_sequence"}
};

static const Statement find_owned = {
	"SELECT 1 FROM pg_catalog.pg_class c"
	" WHERE c.relnamespace" EQ "$1 AND c.relname" EQ "'" CLAIM_TABLE "'"
	" AND pg_catalog.pg_has_role(c.relowner, 'USAGE')",
	1, {OIDOID}
};

static int
group_from_arg(FunctionCallInfo fcinfo, int n)
{
	char	   *privilege = text_to_cstring(arg_name(fcinfo, n, "privilege",
													 NAMEDATALEN));

	if (strcmp(privilege, "consumer") == 0)
		return CONSUMER;
	if (strcmp(privilege, "operator") == 0)
		return OPERATOR;
	if (strcmp(privilege, "observer") == 0)
		return OBSERVER;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unknown privilege \"%s\"", privilege),
			 errhint("The privileges are %s, %s and %s.",
					 "consumer", "operator", "observer")));
	return 0;					/* keep compiler quiet */
}

/*
 * The role, fit for a command.  "public" would be everyone, however it is
 * quoted.
 */
static const char *
role_from_arg(FunctionCallInfo fcinfo, int n)
{
	const char *role;

	if (PG_ARGISNULL(n))
		null_argument("role");
	role = NameStr(*PG_GETARG_NAME(n));
	if (strcmp(role, "public") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_ROLE_SPECIFICATION),
				 errmsg("cannot grant rights on an inbox to everyone")));
	(void) get_role_oid(role, false);
	return quote_identifier(role);
}

/*
 * GRANT itself would only warn somebody who has some rights, but may not pass
 * them on, that it granted none.
 */
static void
require_owner(Oid inbox)
{
	Datum		values[1] = {ObjectIdGetDatum(inbox)};

	if (statement_run(inbox, &find_owned, values, NULL) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of table %s", CLAIM_TABLE)));
}

PG_FUNCTION_INFO_V1(seqinbox_grant);
Datum
seqinbox_grant(PG_FUNCTION_ARGS)
{
	const char *role = role_from_arg(fcinfo, 0);
	int			group = group_from_arg(fcinfo, 1);
	Oid			inbox = inbox_in_use();
	const char *schema = quote_identifier(get_namespace_name(inbox));

	PreventCommandIfReadOnly("seqinbox_grant()");
	SPI_connect();
	require_owner(inbox);
	for (size_t i = 0; i < lengthof(grants); i++)
	{
		char	   *command;

		if ((grants[i].groups & group) == 0)
			continue;
		command = psprintf("GRANT %s ON %s TO %s", grants[i].rights,
						   inbox_sql(schema, grants[i].object), role);
		if (SPI_execute(command, false, 0) < 0)
			elog(ERROR, "could not run \"%s\"", command);
	}
	SPI_finish();

	PG_RETURN_VOID();
}
