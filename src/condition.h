/*-------------------------------------------------------------------------
 *
 * condition.h
 *	  Release conditions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_CONDITION_H
#define SEQINBOX_CONDITION_H

#include "nodes/pg_list.h"

#include "inbox.h"
#include "document.h"

typedef enum ConditionKind
{
	CONDITION_PREDECESSOR,
	CONDITION_AND,
	CONDITION_OR
} ConditionKind;

typedef struct Condition
{
	ConditionKind kind;
	text	   *predecessor;	/* a qualified message type */
	List	   *operands;		/* conditions */
} Condition;

extern Condition *condition_parse(const JsonPlace *place,
								  const JsonbValue *value);
extern Condition *condition_read(Jsonb *stored);
extern List *condition_predecessors(const Condition *condition,
									List *predecessors);
extern bool condition_holds(const Condition *condition,
							const List *processed);
extern List *condition_missing(const Condition *condition,
							   const List *processed, List *missing);

#endif							/* SEQINBOX_CONDITION_H */
