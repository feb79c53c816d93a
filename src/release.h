/*-------------------------------------------------------------------------
 *
 * release.h
 *	  Which messages of an instance may be released.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_RELEASE_H
#define SEQINBOX_RELEASE_H

#include "condition.h"
#include "inbox.h"

extern bool release_condition_holds(Oid inbox, int64 instance_id,
									const Condition *condition);
extern List *releasable_types(Oid inbox, int64 instance_id,
							  const text *sequence_name, bool unconditional,
							  TimestampTz now);

#endif							/* SEQINBOX_RELEASE_H */
