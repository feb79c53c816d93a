/*-------------------------------------------------------------------------
 *
 * declaration.c
 *	  Reads the declarations of sequences and message types.
 *
 * They are read in each call, so a change counts at once in every session,
 * however it was made.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "declaration.h"
#include "message.h"
#include "sql.h"

static const Statement find_type = {
	"SELECT t.message_type, t.release_condition,"
	" s.name, s.retention_period, s.sequencing_start_timestamp"
	" FROM $inbox.message_type_declaration t"
	" JOIN $inbox.sequence_declaration s ON s.name" EQ "t.sequence_name"
	" WHERE t.message_type" EQ "$1",
	1, {TEXTOID}
};

enum
{
	COLUMN_MESSAGE_TYPE = 1,
	COLUMN_CONDITION,
	COLUMN_SEQUENCE_NAME,
	COLUMN_RETENTION,
	COLUMN_START
};

static const Statement find_retention = {
	"SELECT s.retention_period FROM $inbox.sequence_declaration s"
	" WHERE s.name" EQ "$1",
	1, {TEXTOID}
};

static const Statement find_types = {
	"SELECT t.message_type, t.release_condition"
	" FROM $inbox.message_type_declaration t"
	" WHERE t.sequence_name" EQ "$1"
	" ORDER BY t.place, t.message_type",
	1, {TEXTOID}
};

/*
 * One index probe for each declared type, so that the cost does not grow with
 * what waits.  The order is that of the index which also tells the instances
 * apart: with another one, what waits elsewhere would be read.
 */
static const Statement find_types_to_release = {
	"SELECT d.message_type, d.release_condition FROM"
	" (SELECT t.message_type" AS_DEFAULT " AS message_type,"
	" t.release_condition"
	" FROM $inbox.message_type_declaration t"
	" WHERE t.sequence_name" EQ "$1) AS d"
	" CROSS JOIN LATERAL (SELECT 1 FROM $inbox.sequenced_message m"
	" WHERE m.sequence_instance_id" EQ "$2"
	" AND m.message_type" EQ "d.message_type"
	" AND " MESSAGE_TO_RELEASE("$3")
	" ORDER BY m.created_at, m.id LIMIT 1) AS waiting",
	3, {TEXTOID, INT8OID, TIMESTAMPTZOID}
};

/*
 * Reads type and condition, the first two columns of a row.
 */
static void
read_type(int row, Declaration *declaration)
{
	Datum		value;

	memset(declaration, 0, sizeof(*declaration));
	if (statement_get_from(row, COLUMN_MESSAGE_TYPE, TEXTOID, &value))
		declaration->message_type = DatumGetTextPCopy(value);
	if (statement_get_from(row, COLUMN_CONDITION, JSONBOID, &value))
		declaration->condition = condition_read(DatumGetJsonbPCopy(value));
}

void
declaration_of_type(Oid inbox, const text *message_type,
					Declaration *declaration)
{
	Datum		values[1] = {PointerGetDatum(message_type)};
	Datum		value;

	if (statement_run(inbox, &find_type, values, NULL) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("message type \"%s\" is not declared",
						text_to_cstring(message_type)),
				 errhint("Declare it in a sequence with seqinbox_declare().")));

	read_type(0, declaration);
	declaration->sequence_name = statement_get_text(COLUMN_SEQUENCE_NAME);
	if (statement_get(COLUMN_RETENTION, INTERVALOID, &value))
		declaration->retention_period = *DatumGetIntervalP(value);
	if (statement_get(COLUMN_START, TIMESTAMPTZOID, &value))
		declaration->recording =
			DatumGetTimestampTz(value) > GetCurrentTimestamp();
}

/*
 * False when no such sequence is declared.
 */
bool
declared_retention(Oid inbox, const text *sequence_name,
				   Interval *retention_period)
{
	Datum		values[1] = {PointerGetDatum(sequence_name)};
	Datum		value;

	if (statement_run(inbox, &find_retention, values, NULL) == 0 ||
		!statement_get(1, INTERVALOID, &value))
		return false;
	*retention_period = *DatumGetIntervalP(value);
	return true;
}

/*
 * Keeps seqinbox_declare() out until the transaction ends.  False when one is
 * at work: what it has changed cannot be seen before it commits.
 */
bool
declarations_try_hold(Oid inbox)
{
	Oid			relid = get_relname_relid(TYPE_DECLARATION_TABLE, inbox);

	return OidIsValid(relid) &&
		ConditionalLockRelationOid(relid, RowExclusiveLock);
}

static List *
read_types(uint64 rows)
{
	List	   *types = NIL;

	for (uint64 row = 0; row < rows; row++)
	{
		Declaration *declaration = palloc(sizeof(Declaration));

		read_type((int) row, declaration);
		types = lappend(types, declaration);
	}
	return types;
}

/*
 * The types of a sequence in the order of their declaration; none when the
 * sequence is not declared.
 */
List *
declared_types(Oid inbox, const text *sequence_name)
{
	Datum		values[1] = {PointerGetDatum(sequence_name)};

	return read_types(statement_run(inbox, &find_types, values, NULL));
}

/*
 * The types of a sequence of which an instance has messages to release, once
 * the condition of the type holds.
 */
List *
declared_types_to_release(Oid inbox, int64 instance_id,
						  const text *sequence_name, TimestampTz now)
{
	Datum		values[3];

	values[0] = PointerGetDatum(sequence_name);
	values[1] = Int64GetDatum(instance_id);
	values[2] = TimestampTzGetDatum(now);
	return read_types(statement_run(inbox, &find_types_to_release,
									values, NULL));
}

void
undeclared_sequence(const text *sequence_name, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT),
			 errmsg("sequence \"%s\" is not declared",
					text_to_cstring(sequence_name)),
			 errhint("%s", hint)));
}
