/*-------------------------------------------------------------------------
 *
 * descriptor.c
 *	  Reads and checks the document that declares sequences.
 *
 * All is checked here that can be checked without the database.  A fault is
 * reported with its path in the document.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"

#include "args.h"
#include "compat.h"
#include "descriptor.h"
#include "texts.h"
#include "window.h"

#define KEY_SEQUENCES "sequences"
#define KEY_NAME "name"
#define KEY_RETENTION "retentionPeriod"
#define KEY_START "sequencingStartTimestamp"
#define KEY_MESSAGES "messages"
#define KEY_TYPE "type"
#define KEY_SUB_TYPE "subType"
#define KEY_CONDITION "releaseCondition"

/* keys that only the consumer's own framework reads */
#define CONSUMER_KEYS \
	"topic", "topics", "clusterName", "contextIdExtractor", "messageFilter"

/* states of the search of cycles */
enum
{
	NOT_VISITED,
	BEING_VISITED,
	VISITED
};

JsonPlace
descriptor_place(const TypeDescriptor *type)
{
	JsonPlace	place = {NULL, type->path, 0};

	return place;
}

/*
 * Calls an input function; what it refuses is a fault of the document.
 */
static Datum
read_string(const JsonPlace *place, const JsonbValue *value, PGFunction input)
{
	char	   *string = text_to_cstring(document_name(place, value));
	MemoryContext context = CurrentMemoryContext;
	Datum		result = (Datum) 0;

	PG_TRY();
	{
		result = DirectFunctionCall3(input, CStringGetDatum(string),
									 ObjectIdGetDatum(InvalidOid),
									 Int32GetDatum(-1));
	}
	PG_CATCH();
	{
		ErrorData  *error;

		if (ERRCODE_TO_CATEGORY(geterrcode()) != ERRCODE_DATA_EXCEPTION)
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		document_fault(place, "The value is refused: %s.",
					   error->message);
	}
	PG_END_TRY();

	return result;
}

/*
 * An input function for retention periods.
 */
static Datum
retention_in(PG_FUNCTION_ARGS)
{
	Datum		retention = interval_in(fcinfo);

	check_retention(DatumGetIntervalP(retention), KEY_RETENTION);
	return retention;
}

static TimestampTz
parse_start(const JsonPlace *place, const JsonbValue *value)
{
	if (value == NULL)
		return DT_NOBEGIN;
	return DatumGetTimestampTz(read_string(place, value, timestamptz_in));
}

static text *
qualified_type(const JsonPlace *place, const text *type, const text *sub_type)
{
	text	   *qualified;

	if (sub_type == NULL)
		return cstring_to_text(text_to_cstring(type));
	qualified = cstring_to_text(psprintf("%s.%s", text_to_cstring(type),
										 text_to_cstring(sub_type)));
	if (VARSIZE_ANY_EXHDR(qualified) > MAX_TYPE_LENGTH)
		document_fault(place, "Type and sub-type together have more than %d bytes.",
					   MAX_TYPE_LENGTH);
	return qualified;
}

static TypeDescriptor *
parse_type(const JsonPlace *place, const JsonbValue *value)
{
	static const char *const keys[] = {
		KEY_TYPE, KEY_SUB_TYPE, KEY_CONDITION, CONSUMER_KEYS, NULL
	};
	JsonbContainer *object = document_object(place, value);
	JsonPlace	type_place = JSON_MEMBER(*place, KEY_TYPE);
	JsonPlace	sub_type_place = JSON_MEMBER(*place, KEY_SUB_TYPE);
	JsonPlace	condition_place = JSON_MEMBER(*place, KEY_CONDITION);
	JsonbValue *sub_type = document_get(object, KEY_SUB_TYPE);
	JsonbValue *condition = document_get(object, KEY_CONDITION);
	TypeDescriptor *type = palloc0(sizeof(TypeDescriptor));

	document_check_keys(place, object, keys);
	type->path = document_path(place);
	type->type = document_name(&type_place, document_get(object, KEY_TYPE));
	if (sub_type != NULL)
		type->sub_type = document_name(&sub_type_place, sub_type);
	type->message_type = qualified_type(place, type->type, type->sub_type);
	if (condition != NULL)
	{
		type->condition = condition_parse(&condition_place, condition);
		type->stored_condition = JsonbValueToJsonb(condition);
	}
	return type;
}

static SequenceDescriptor *
parse_sequence(const JsonPlace *place, const JsonbValue *value)
{
	static const char *const keys[] = {
		KEY_NAME, KEY_RETENTION, KEY_START, KEY_MESSAGES, CONSUMER_KEYS, NULL
	};
	JsonbContainer *object = document_object(place, value);
	JsonPlace	name_place = JSON_MEMBER(*place, KEY_NAME);
	JsonPlace	retention_place = JSON_MEMBER(*place, KEY_RETENTION);
	JsonPlace	start_place = JSON_MEMBER(*place, KEY_START);
	JsonPlace	messages_place = JSON_MEMBER(*place, KEY_MESSAGES);
	SequenceDescriptor *sequence = palloc0(sizeof(SequenceDescriptor));
	JsonbContainer *messages;

	document_check_keys(place, object, keys);
	sequence->name = document_name(&name_place, document_get(object, KEY_NAME));
	if (is_window_sequence(sequence->name))
		document_fault(&name_place, "The name is reserved.");
	sequence->retention_period =
		DatumGetIntervalP(read_string(&retention_place,
									  document_get(object, KEY_RETENTION),
									  retention_in));
	sequence->sequencing_start =
		parse_start(&start_place, document_get(object, KEY_START));

	messages = document_array(&messages_place, document_get(object, KEY_MESSAGES));
	if (JsonContainerSize(messages) == 0)
		document_fault(&messages_place, "A sequence needs at least one message.");
	for (uint32 i = 0; i < JsonContainerSize(messages); i++)
	{
		JsonPlace	here = JSON_ELEMENT(messages_place, i);
		JsonbValue *message = getIthJsonbValueFromContainer(messages, i);

		sequence->types = lappend(sequence->types, parse_type(&here, message));
	}
	return sequence;
}

/*
 * A qualified type belongs to one sequence, and a type is either declared as
 * such or by its sub-types.
 */
static void
check_type_is_new(const List *sequences, const TypeDescriptor *type)
{
	JsonPlace	place = descriptor_place(type);
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, sequences)
	{
		const SequenceDescriptor *sequence = lfirst(lc);

		foreach(lc2, sequence->types)
		{
			const TypeDescriptor *other = lfirst(lc2);

			if (other == type)
				return;
			if (text_equals(other->message_type, type->message_type))
				document_fault(&place, "Message type \"%s\" is declared twice.",
							   text_to_cstring(type->message_type));
			if ((other->sub_type == NULL) != (type->sub_type == NULL) &&
				text_equals(other->type, type->type))
				document_fault(&place, "Type \"%s\" is declared both with and without a sub-type.",
							   text_to_cstring(type->type));
		}
	}
}

static TypeDescriptor *
find_type(const SequenceDescriptor *sequence, const text *message_type)
{
	ListCell   *lc;

	foreach(lc, sequence->types)
	{
		TypeDescriptor *type = lfirst(lc);

		if (text_equals(type->message_type, message_type))
			return type;
	}
	return NULL;
}

/*
 * Visits a type and, before it is done with it, all types that it waits for.
 * Whoever is reached again meanwhile waits for itself.
 */
static void
check_predecessors(const SequenceDescriptor *sequence, TypeDescriptor *type)
{
	JsonPlace	place = descriptor_place(type);
	ListCell   *lc;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	type->visit = BEING_VISITED;
	foreach(lc, condition_predecessors(type->condition, NIL))
	{
		const text *name = lfirst(lc);
		TypeDescriptor *predecessor = find_type(sequence, name);

		if (predecessor == NULL)
			document_fault(&place, "Predecessor \"%s\" is not in the sequence.",
						   text_to_cstring(name));
		if (predecessor->visit == BEING_VISITED)
			document_fault(&place, "The message waits for itself, through predecessor \"%s\".",
						   text_to_cstring(name));
		if (predecessor->visit == NOT_VISITED)
			check_predecessors(sequence, predecessor);
	}
	type->visit = VISITED;
}

static void
check_sequence(const JsonPlace *place, const List *sequences,
			   const SequenceDescriptor *sequence)
{
	JsonPlace	name_place = JSON_MEMBER(*place, KEY_NAME);
	ListCell   *lc;

	foreach(lc, sequences)
	{
		const SequenceDescriptor *other = lfirst(lc);

		if (other != sequence && text_equals(other->name, sequence->name))
			document_fault(&name_place, "The sequence is declared twice.");
	}
	foreach(lc, sequence->types)
	{
		CHECK_FOR_INTERRUPTS();
		check_type_is_new(sequences, lfirst(lc));
	}
	foreach(lc, sequence->types)
	{
		TypeDescriptor *type = lfirst(lc);

		if (type->visit == NOT_VISITED)
			check_predecessors(sequence, type);
	}
}

/*
 * Returns the sequences of a document, in its order.
 */
List *
descriptor_parse(Jsonb *document)
{
	static const char *const keys[] = {
		KEY_SEQUENCES, "subTypeResolvers", NULL
	};
	JsonPlace	root = {NULL, "$", 0};
	JsonPlace	sequences_place = JSON_MEMBER(root, KEY_SEQUENCES);
	JsonbContainer *array;
	List	   *sequences = NIL;

	if (!JB_ROOT_IS_OBJECT(document))
		document_fault(&root, "An object is needed.");
	document_check_keys(&root, &document->root, keys);
	array = document_array(&sequences_place,
						   document_get(&document->root, KEY_SEQUENCES));
	if (JsonContainerSize(array) == 0)
		document_fault(&sequences_place, "At least one sequence is needed.");

	for (uint32 i = 0; i < JsonContainerSize(array); i++)
	{
		JsonPlace	here = JSON_ELEMENT(sequences_place, i);
		SequenceDescriptor *sequence;

		sequence = parse_sequence(&here,
								  getIthJsonbValueFromContainer(array, i));
		sequences = lappend(sequences, sequence);
		check_sequence(&here, sequences, sequence);
	}
	return sequences;
}
