/*-------------------------------------------------------------------------
 *
 * declare.c
 *	  The SQL-callable function that declares sequences.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "args.h"
#include "descriptor.h"
#include "inbox.h"
#include "message.h"
#include "sql.h"
#include "texts.h"

/* one declaration at a time; readers are not kept waiting */
static const Statement lock = {
	"LOCK TABLE $inbox." TYPE_DECLARATION_TABLE
	" IN SHARE ROW EXCLUSIVE MODE",
	0, {0}
};

static const Statement find_foreign = {
	"SELECT t.sequence_name FROM $inbox.message_type_declaration t"
	" WHERE t.message_type" EQ "$1"
	" AND NOT (t.sequence_name" EQ "ANY ($2))",
	2, {TEXTOID, TEXTARRAYOID}
};

#define FOLLOWED_BY(character) \
	"CASE WHEN $3 THEN $1" \
	" ELSE $1 OPERATOR(pg_catalog.||) '" character "' END" AS_C

/*
 * A type is either declared as such or by its sub-types.  Those that begin
 * with the type and a dot come before the type and a slash, the next
 * character, which makes them a range of the primary key.
 */
static const Statement find_foreign_form = {
	"SELECT t.sequence_name FROM $inbox.message_type_declaration t"
	" WHERE t.message_type" GE FOLLOWED_BY(".")
	" AND t.message_type" LE FOLLOWED_BY("/")
	" AND NOT (t.sequence_name" EQ "ANY ($2))"
	" AND CASE WHEN $3 THEN t.message_type" EQ "$1"
	" ELSE t.sub_type IS NOT NULL"
	" AND t.message_type" EQ "($1 OPERATOR(pg_catalog.||) '.'"
	" OPERATOR(pg_catalog.||) t.sub_type) END"
	" LIMIT 1",
	3, {TEXTOID, TEXTARRAYOID, BOOLOID}
};

/*
 * Waiting messages of the types that a sequence is about to lose, looked up
 * by the index on unprocessed messages.
 */
static const Statement count_waiting = {
	"SELECT d.message_type, pg_catalog.count(*) FROM"
	" (SELECT t.message_type" AS_DEFAULT " AS message_type"
	" FROM $inbox.message_type_declaration t"
	" WHERE t.sequence_name" EQ "$1"
	" AND NOT (t.message_type" EQ "ANY ($2))) AS d"
	" JOIN $inbox.sequenced_message m ON m.message_type" EQ "d.message_type"
	" WHERE m.state" EQ "'" STATE_WAITING "'"
	" GROUP BY d.message_type"
	" ORDER BY d.message_type LIMIT 1",
	2, {TEXTOID, TEXTARRAYOID}
};

static const Statement put_sequence = {
	"INSERT INTO $inbox.sequence_declaration AS s"
	" (name, retention_period, sequencing_start_timestamp)"
	" VALUES ($1, $2, $3)"
	" ON CONFLICT (name) DO UPDATE"
	" SET retention_period = EXCLUDED.retention_period,"
	" sequencing_start_timestamp = EXCLUDED.sequencing_start_timestamp,"
	" declared_at = pg_catalog.now()",
	3, {TEXTOID, INTERVALOID, TIMESTAMPTZOID}
};

static const Statement delete_types = {
	"DELETE FROM $inbox.message_type_declaration t"
	" WHERE t.sequence_name" EQ "$1",
	1, {TEXTOID}
};

static const Statement insert_type = {
	"INSERT INTO $inbox.message_type_declaration"
	" (message_type, sub_type, sequence_name, place, release_condition)"
	" VALUES ($1, $2, $3, $4, $5)",
	5, {TEXTOID, TEXTOID, TEXTOID, INT4OID, JSONBOID}
};

/*
 * What waits may now be releasable, so its instances are due.  They are held
 * before they are written, and in the same order, as deliveries do: whoever
 * holds an instance already is not made to queue behind a drain that waits
 * for deliveries, some of which may be waiting for us.
 */
#define IN_ORDER " ORDER BY i.name" AS_C ", i.context_id" AS_C

static const Statement hold_waiting = {
	"SELECT pg_catalog.array_agg(l.id) FROM ("
	"SELECT i.id FROM $inbox.sequence_instance i"
	" WHERE i.name" EQ "ANY ($1) AND i.id" EQ "ANY (ARRAY("
	"SELECT m.sequence_instance_id FROM"
	" (SELECT t.message_type" AS_DEFAULT " AS message_type"
	" FROM $inbox.message_type_declaration t"
	" WHERE t.sequence_name" EQ "ANY ($1)) AS d"
	" JOIN $inbox.sequenced_message m ON m.message_type" EQ "d.message_type"
	" WHERE " MESSAGE_TO_RELEASE("$2") "))"
	IN_ORDER " FOR KEY SHARE) AS l",
	2, {TEXTARRAYOID, TIMESTAMPTZOID}
};

static const Statement set_due = {
	"UPDATE $inbox.sequence_instance i SET release_due_at = $2"
	" WHERE i.id" EQ "ANY (ARRAY(SELECT l.id FROM ("
	"SELECT i.id FROM $inbox.sequence_instance i WHERE i.id" EQ "ANY ($1)"
	IN_ORDER " FOR NO KEY UPDATE) AS l))"
	" AND (i.release_due_at IS NULL OR i.release_due_at" GT "$2)",
	2, {INT8ARRAYOID, TIMESTAMPTZOID}
};

static List *
sequence_names(const List *sequences)
{
	List	   *names = NIL;
	ListCell   *lc;

	foreach(lc, sequences)
		names = lappend(names, ((SequenceDescriptor *) lfirst(lc))->name);
	return names;
}

static List *
type_names(const SequenceDescriptor *sequence)
{
	List	   *names = NIL;
	ListCell   *lc;

	foreach(lc, sequence->types)
		names = lappend(names, ((TypeDescriptor *) lfirst(lc))->message_type);
	return names;
}

static char *
found_sequence(void)
{
	Datum		name;

	if (!statement_get(1, TEXTOID, &name))
		elog(ERROR, "declared message type has no sequence");
	return TextDatumGetCString(name);
}

/*
 * What the document alone cannot show: the type may stand in a sequence that
 * the document does not replace.
 */
static void
check_other_sequences(Oid inbox, const TypeDescriptor *type,
					  ArrayType *replaced)
{
	JsonPlace	place = descriptor_place(type);
	Datum		values[3];

	values[0] = PointerGetDatum(type->message_type);
	values[1] = PointerGetDatum(replaced);
	if (statement_run(inbox, &find_foreign, values, NULL) > 0)
		document_fault(&place,
					   "Message type \"%s\" is declared in sequence \"%s\" already.",
					   text_to_cstring(type->message_type), found_sequence());

	values[0] = PointerGetDatum(type->type);
	values[2] = BoolGetDatum(type->sub_type != NULL);
	if (statement_run(inbox, &find_foreign_form, values, NULL) > 0)
		document_fault(&place,
					   "Type \"%s\" is declared both with and without a sub-type, the other in sequence \"%s\".",
					   text_to_cstring(type->type), found_sequence());
}

static void
refuse_to_strand_waiting(Oid inbox, const SequenceDescriptor *sequence)
{
	Datum		values[2];
	Datum		type;
	Datum		count;
	int64		waiting;

	values[0] = PointerGetDatum(sequence->name);
	values[1] = PointerGetDatum(text_list_array(type_names(sequence)));
	if (statement_run(inbox, &count_waiting, values, NULL) == 0)
		return;
	(void) statement_get(1, TEXTOID, &type);
	(void) statement_get(2, INT8OID, &count);
	waiting = DatumGetInt64(count);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("cannot remove message type \"%s\" from sequence \"%s\"",
					TextDatumGetCString(type),
					text_to_cstring(sequence->name)),
			 errdetail_plural("%lld message of this type is waiting.",
							  "%lld messages of this type are waiting.",
							  waiting, (long long) waiting)));
}

static void
insert_types(Oid inbox, const SequenceDescriptor *sequence)
{
	int			place = 0;
	ListCell   *lc;

	foreach(lc, sequence->types)
	{
		const TypeDescriptor *type = lfirst(lc);
		Datum		values[5];
		char		nulls[5] = {' ', ' ', ' ', ' ', ' '};

		values[0] = PointerGetDatum(type->message_type);
		values[1] = PointerGetDatum(type->sub_type);
		nulls[1] = type->sub_type == NULL ? 'n' : ' ';
		values[2] = PointerGetDatum(sequence->name);
		values[3] = Int32GetDatum(++place);
		values[4] = PointerGetDatum(type->stored_condition);
		nulls[4] = type->stored_condition == NULL ? 'n' : ' ';
		(void) statement_run(inbox, &insert_type, values, nulls);
	}
}

static void
put_declaration(Oid inbox, const SequenceDescriptor *sequence)
{
	bool		starts = !TIMESTAMP_IS_NOBEGIN(sequence->sequencing_start);
	Datum		values[3];
	char		nulls[3] = {' ', ' ', ' '};

	values[0] = PointerGetDatum(sequence->name);
	values[1] = IntervalPGetDatum(sequence->retention_period);
	values[2] = TimestampTzGetDatum(sequence->sequencing_start);
	nulls[2] = starts ? ' ' : 'n';
	(void) statement_run(inbox, &put_sequence, values, nulls);
	(void) statement_run(inbox, &delete_types, values, NULL);
}

PG_FUNCTION_INFO_V1(seqinbox_declare);
Datum
seqinbox_declare(PG_FUNCTION_ARGS)
{
	Oid			inbox;
	List	   *sequences;
	ArrayType  *replaced;
	Datum		values[2];
	ListCell   *lc;
	ListCell   *lc2;

	if (PG_ARGISNULL(0))
		null_argument("declaration");
	sequences = descriptor_parse(PG_GETARG_JSONB_P(0));
	replaced = text_list_array(sequence_names(sequences));
	inbox = inbox_in_use();

	SPI_connect();
	(void) statement_run(inbox, &lock, NULL, NULL);
	foreach(lc, sequences)
	{
		const SequenceDescriptor *sequence = lfirst(lc);

		foreach(lc2, sequence->types)
			check_other_sequences(inbox, lfirst(lc2), replaced);
		refuse_to_strand_waiting(inbox, sequence);
	}

	/* a type may move between the sequences, so all of them leave first */
	foreach(lc, sequences)
		put_declaration(inbox, lfirst(lc));
	foreach(lc, sequences)
		insert_types(inbox, lfirst(lc));

	values[0] = PointerGetDatum(replaced);
	values[1] = TimestampTzGetDatum(GetCurrentTimestamp());
	(void) statement_run(inbox, &hold_waiting, values, NULL);
	if (statement_get(1, INT8ARRAYOID, &values[0]))
	{
		values[0] = PointerGetDatum(DatumGetArrayTypePCopy(values[0]));
		(void) statement_run(inbox, &set_due, values, NULL);
	}
	SPI_finish();

	PG_RETURN_VOID();
}
