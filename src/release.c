/*-------------------------------------------------------------------------
 *
 * release.c
 *	  Decides which messages of an instance may be released.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "declaration.h"
#include "message.h"
#include "release.h"

/*
 * Reads with a snapshot of its own: in READ COMMITTED, what was committed
 * before the caller got its lock is seen.
 */
bool
release_condition_holds(Oid inbox, int64 instance_id,
						const Condition *condition)
{
	List	   *predecessors = condition_predecessors(condition, NIL);
	List	   *processed;

	processed = message_processed_types(inbox, instance_id, predecessors);
	return condition_holds(condition, processed);
}

/*
 * The types of which an instance has messages to release now.  As deliveries
 * do, those of an instance that keeps nobody waiting need no condition.
 */
List *
releasable_types(Oid inbox, int64 instance_id, const text *sequence_name,
				 bool unconditional, TimestampTz now)
{
	List	   *declarations = declared_types_to_release(inbox, instance_id,
														 sequence_name, now);
	List	   *predecessors = NIL;
	List	   *processed;
	List	   *types = NIL;
	ListCell   *lc;

	foreach(lc, declarations)
	{
		const Declaration *declaration = lfirst(lc);

		predecessors = condition_predecessors(declaration->condition,
											  predecessors);
	}
	processed = message_processed_types(inbox, instance_id, predecessors);
	foreach(lc, declarations)
	{
		const Declaration *declaration = lfirst(lc);

		if (unconditional ||
			condition_holds(declaration->condition, processed))
			types = lappend(types, declaration->message_type);
	}
	return types;
}
