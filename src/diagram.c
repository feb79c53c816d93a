/*-------------------------------------------------------------------------
 *
 * diagram.c
 *	  The SQL-callable function that draws a sequence as a Mermaid flowchart.
 *
 * Every message type is a node, every "and" and "or" a small one between
 * them; arrows lead from predecessors to what waits for them.  With a
 * context, the nodes show how far its instance has come.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "args.h"
#include "compat.h"
#include "condition.h"
#include "declaration.h"
#include "inbox.h"
#include "message.h"
#include "sql.h"
#include "texts.h"

static const Statement find_instance = {
	"SELECT i.id FROM $inbox.sequence_instance i"
	" WHERE i.name" EQ "$1 AND i.context_id" EQ "$2",
	2, {TEXTOID, TEXTOID}
};

/* how many messages of a type are in each state */
static const Statement count_states = {
	"SELECT m.message_type,"
	" pg_catalog.count(*) FILTER (WHERE m.state" EQ "'" STATE_PROCESSED "'),"
	" pg_catalog.count(*) FILTER (WHERE m.state" EQ "'" STATE_WAITING "'),"
	" pg_catalog.count(*) FILTER (WHERE m.state" EQ "'" STATE_FAILED "')"
	" FROM $inbox.sequenced_message m"
	" WHERE m.sequence_instance_id" EQ "$1"
	" GROUP BY m.message_type",
	1, {INT8OID}
};

/* the classes of nodes, the one that needs attention most last */
typedef struct NodeClass
{
	const char *name;
	const char *style;
} NodeClass;

static const NodeClass node_classes[] = {
	{"missing", "fill:#eeeeee,stroke:#999999,stroke-dasharray:4"},
	{"processed", "fill:#ccffcc,stroke:#339933"},
	{"waiting", "fill:#ffeeaa,stroke:#cc9900"},
	{"failed", "fill:#ffcccc,stroke:#cc3333"}
};

enum
{
	CLASS_NONE,
	CLASS_PROCESSED,
	CLASS_WAITING,
	CLASS_FAILED
};

typedef struct TypeState
{
	text	   *message_type;
	int64		counts[lengthof(node_classes)];
} TypeState;

typedef struct Diagram
{
	StringInfoData text;
	List	   *types;			/* declarations */
	int			gates;			/* "and" and "or" nodes so far */
} Diagram;

/*
 * A label stands in double quotes.  What would end it, or be read as markup,
 * is written as an entity.
 */
static void
append_label(StringInfo diagram, const text *label)
{
	const char *s = VARDATA_ANY(label);
	const char *end = s + VARSIZE_ANY_EXHDR(label);

	while (s < end)
	{
		int			length = pg_mblen(s);

		if (length > 1)
			appendBinaryStringInfo(diagram, s, length);
		else if (strchr("\"#&;<>`\\{}[]()|", *s) != NULL ||
				 (unsigned char) *s < ' ')
			appendStringInfo(diagram, "#%d;", (unsigned char) *s);
		else
			appendStringInfoChar(diagram, *s);
		s += length;
	}
}

static int
index_of_type(const Diagram *diagram, const text *message_type)
{
	int			index = 0;
	ListCell   *lc;

	foreach(lc, diagram->types)
	{
		const Declaration *type = lfirst(lc);

		if (text_equals(type->message_type, message_type))
			return index;
		index++;
	}
	return -1;
}

/*
 * Draws what leads to a node.  A predecessor that is not in the sequence can
 * only come from a declaration that was changed by hand; it gets a node too.
 */
static void
draw_condition(Diagram *diagram, const Condition *condition,
			   const char *target)
{
	char	   *gate;
	ListCell   *lc;

	check_stack_depth();
	if (condition->kind == CONDITION_PREDECESSOR)
	{
		int			index = index_of_type(diagram, condition->predecessor);

		if (index < 0)
		{
			gate = psprintf("g%d", diagram->gates++);
			appendStringInfo(&diagram->text, "    %s[\"", gate);
			append_label(&diagram->text, condition->predecessor);
			appendStringInfo(&diagram->text, "\"]\n    %s --> %s\n",
							 gate, target);
		}
		else
			appendStringInfo(&diagram->text, "    t%d --> %s\n",
							 index, target);
		return;
	}

	gate = psprintf("g%d", diagram->gates++);
	appendStringInfo(&diagram->text, "    %s((\"%s\"))\n    %s --> %s\n",
					 gate,
					 condition->kind == CONDITION_AND ? "and" : "or",
					 gate, target);
	foreach(lc, condition->operands)
		draw_condition(diagram, lfirst(lc), gate);
}

static void
draw_sequence(Diagram *diagram)
{
	int			index = 0;
	ListCell   *lc;

	appendStringInfoString(&diagram->text, "flowchart TD\n");
	foreach(lc, diagram->types)
	{
		const Declaration *type = lfirst(lc);

		appendStringInfo(&diagram->text, "    t%d[\"", index++);
		append_label(&diagram->text, type->message_type);
		appendStringInfoString(&diagram->text, "\"]\n");
	}
	index = 0;
	foreach(lc, diagram->types)
	{
		const Declaration *type = lfirst(lc);

		if (type->condition != NULL)
			draw_condition(diagram, type->condition,
						   psprintf("t%d", index));
		index++;
	}
}

static List *
read_states(Oid inbox, const text *sequence_name, const text *context_id)
{
	Datum		values[2];
	Datum		value;
	uint64		rows;
	List	   *states = NIL;

	values[0] = PointerGetDatum(sequence_name);
	values[1] = PointerGetDatum(context_id);
	if (statement_run(inbox, &find_instance, values, NULL) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_NO_DATA_FOUND),
				 errmsg("sequence \"%s\" has no instance for context ID \"%s\"",
						text_to_cstring(sequence_name),
						text_to_cstring(context_id))));
	(void) statement_get(1, INT8OID, &value);
	values[0] = value;
	rows = statement_run(inbox, &count_states, values, NULL);
	for (uint64 row = 0; row < rows; row++)
	{
		TypeState  *state = palloc0(sizeof(TypeState));

		if (statement_get_from((int) row, 1, TEXTOID, &value))
			state->message_type = DatumGetTextPCopy(value);
		for (int kind = CLASS_PROCESSED; kind <= CLASS_FAILED; kind++)
		{
			if (statement_get_from((int) row, kind + 1, INT8OID, &value))
				state->counts[kind] = DatumGetInt64(value);
		}
		states = lappend(states, state);
	}
	return states;
}

static int
class_of(const List *states, const text *message_type)
{
	ListCell   *lc;

	foreach(lc, states)
	{
		const TypeState *state = lfirst(lc);

		if (!text_equals(state->message_type, message_type))
			continue;
		for (int kind = CLASS_FAILED; kind > CLASS_NONE; kind--)
		{
			if (state->counts[kind] > 0)
				return kind;
		}
	}
	return CLASS_NONE;
}

static void
draw_states(Diagram *diagram, const List *states)
{
	int			index = 0;
	ListCell   *lc;

	for (size_t i = 0; i < lengthof(node_classes); i++)
		appendStringInfo(&diagram->text, "    classDef %s %s\n",
						 node_classes[i].name, node_classes[i].style);
	foreach(lc, diagram->types)
	{
		const Declaration *type = lfirst(lc);

		int			kind = class_of(states, type->message_type);

		appendStringInfo(&diagram->text, "    class t%d %s\n", index++,
						 node_classes[kind].name);
	}
}

PG_FUNCTION_INFO_V1(seqinbox_diagram);
Datum
seqinbox_diagram(PG_FUNCTION_ARGS)
{
	text	   *sequence_name = arg_name(fcinfo, 0, "sequence_name",
										 MAX_TYPE_LENGTH);
	text	   *context_id = NULL;
	Oid			inbox;
	Diagram		diagram;

	if (!PG_ARGISNULL(1))
		context_id = arg_name(fcinfo, 1, "context_id", MAX_ID_LENGTH);
	inbox = inbox_in_use();
	memset(&diagram, 0, sizeof(diagram));
	initStringInfo(&diagram.text);

	SPI_connect();
	diagram.types = declared_types(inbox, sequence_name);
	if (diagram.types == NIL)
		undeclared_sequence(sequence_name,
							"Declare it with seqinbox_declare().");
	draw_sequence(&diagram);
	if (context_id != NULL)
		draw_states(&diagram, read_states(inbox, sequence_name, context_id));
	SPI_finish();

	PG_RETURN_TEXT_P(cstring_to_text_with_len(diagram.text.data,
											  diagram.text.len));
}
