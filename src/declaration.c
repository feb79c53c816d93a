/*-------------------------------------------------------------------------
 *
 * declaration.c
 *	  Reads the declarations of sequences and message types.
 *
 * They are read in each call, so a change counts at once in every session.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "declaration.h"
#include "sql.h"

static const Statement find_type = {
	"SELECT s.name, s.retention_period"
	" FROM $inbox.message_type_declaration t"
	" JOIN $inbox.sequence_declaration s ON s.name" EQ "t.sequence_name"
	" WHERE t.message_type" EQ "$1",
	1, {TEXTOID}
};

static const Statement find_retention = {
	"SELECT s.retention_period FROM $inbox.sequence_declaration s"
	" WHERE s.name" EQ "$1",
	1, {TEXTOID}
};

void
declaration_of_type(Oid inbox, const text *message_type,
					Declaration *declaration)
{
	Datum		values[1] = {PointerGetDatum(message_type)};
	Datum		value;

	memset(declaration, 0, sizeof(*declaration));
	if (statement_run(inbox, &find_type, values, NULL) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("message type \"%s\" is not declared",
						text_to_cstring(message_type)),
				 errhint("Declare it in a sequence with seqinbox_declare().")));
	if (statement_get(1, &value))
		declaration->sequence_name = DatumGetTextPCopy(value);
	if (statement_get(2, &value))
		declaration->retention_period = *DatumGetIntervalP(value);
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
		!statement_get(1, &value))
		return false;
	*retention_period = *DatumGetIntervalP(value);
	return true;
}
