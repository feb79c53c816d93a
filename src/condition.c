/*-------------------------------------------------------------------------
 *
 * condition.c
 *	  Reads and evaluates release conditions.
 *
 * A condition is a predecessor, or an "and" or "or" of conditions, nested to
 * any depth.  It holds, or not, for the set of message types that have been
 * processed in a sequence instance.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"

#include "compat.h"
#include "condition.h"
#include "texts.h"

#define KEY_PREDECESSOR "predecessor"
#define KEY_AND "and"
#define KEY_OR "or"

static void
refuse_repeated_predecessor(const JsonPlace *place, const List *operands,
							const Condition *operand)
{
	ListCell   *lc;

	if (operand->kind != CONDITION_PREDECESSOR)
		return;
	foreach(lc, operands)
	{
		const Condition *other = lfirst(lc);

		if (other->kind == CONDITION_PREDECESSOR &&
			text_equals(other->predecessor, operand->predecessor))
			document_fault(place, "Predecessor \"%s\" occurs twice.",
						   text_to_cstring(operand->predecessor));
	}
}

static List *
parse_operands(const JsonPlace *place, const JsonbValue *value)
{
	JsonbContainer *array = document_array(place, value);
	uint32		count = JsonContainerSize(array);
	List	   *operands = NIL;

	if (count < 2)
		document_fault(place, "At least two conditions are needed.");
	for (uint32 i = 0; i < count; i++)
	{
		JsonPlace	here = JSON_ELEMENT(*place, i);
		Condition  *operand;

		operand = condition_parse(&here,
								  getIthJsonbValueFromContainer(array, i));
		refuse_repeated_predecessor(&here, operands, operand);
		operands = lappend(operands, operand);
	}
	return operands;
}

Condition *
condition_parse(const JsonPlace *place, const JsonbValue *value)
{
	static const char *const keys[] = {
		KEY_PREDECESSOR, KEY_AND, KEY_OR, NULL
	};
	JsonbContainer *object;
	JsonPlace	here = {place, NULL, 0};
	JsonbValue *member;
	Condition  *condition = palloc0(sizeof(Condition));

	check_stack_depth();
	object = document_object(place, value);
	document_check_keys(place, object, keys);
	if (JsonContainerSize(object) != 1)
		document_fault(place,
					   "A condition needs exactly one of \"%s\", \"%s\" and \"%s\".",
					   KEY_PREDECESSOR, KEY_AND, KEY_OR);

	if ((member = document_get(object, KEY_PREDECESSOR)) != NULL)
	{
		here.key = KEY_PREDECESSOR;
		condition->kind = CONDITION_PREDECESSOR;
		condition->predecessor = document_name(&here, member);
	}
	else if ((member = document_get(object, KEY_AND)) != NULL)
	{
		here.key = KEY_AND;
		condition->kind = CONDITION_AND;
		condition->operands = parse_operands(&here, member);
	}
	else
	{
		here.key = KEY_OR;
		condition->kind = CONDITION_OR;
		condition->operands = parse_operands(&here, document_get(object, KEY_OR));
	}
	return condition;
}

/*
 * A condition as the declaration's table holds it; NULL for none.
 */
Condition *
condition_read(Jsonb *stored)
{
	JsonPlace	root = {NULL, "release_condition", 0};
	JsonbValue	value;

	if (stored == NULL)
		return NULL;
	value.type = jbvBinary;
	value.val.binary.data = &stored->root;
	value.val.binary.len = VARSIZE(stored) - VARHDRSZ;
	return condition_parse(&root, &value);
}

/*
 * Adds the predecessors of a condition, each once, to a list.
 */
List *
condition_predecessors(const Condition *condition, List *predecessors)
{
	ListCell   *lc;

	check_stack_depth();
	if (condition == NULL)
		return predecessors;
	if (condition->kind == CONDITION_PREDECESSOR)
		return text_list_add(predecessors, condition->predecessor);
	foreach(lc, condition->operands)
		predecessors = condition_predecessors(lfirst(lc), predecessors);
	return predecessors;
}

bool
condition_holds(const Condition *condition, const List *processed)
{
	ListCell   *lc;

	check_stack_depth();
	if (condition == NULL)
		return true;
	if (condition->kind == CONDITION_PREDECESSOR)
		return text_list_member(processed, condition->predecessor);
	foreach(lc, condition->operands)
	{
		if (condition_holds(lfirst(lc), processed) ==
			(condition->kind == CONDITION_OR))
			return condition->kind == CONDITION_OR;
	}
	return condition->kind == CONDITION_AND;
}

/*
 * Adds the predecessors that keep a condition from holding.  Those of a part
 * that holds already are not missed.
 */
List *
condition_missing(const Condition *condition, const List *processed,
				  List *missing)
{
	ListCell   *lc;

	if (condition_holds(condition, processed))
		return missing;
	if (condition->kind == CONDITION_PREDECESSOR)
		return text_list_add(missing, condition->predecessor);
	foreach(lc, condition->operands)
		missing = condition_missing(lfirst(lc), processed, missing);
	return missing;
}
