/*-------------------------------------------------------------------------
 *
 * instance.h
 *	  Sequence instances: one run of a sequence for one context ID.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_INSTANCE_H
#define SEQINBOX_INSTANCE_H

#include "utils/timestamp.h"

#include "inbox.h"

#define INSTANCE_OPEN "OPEN"
#define INSTANCE_CLOSED "CLOSED"

/* an instance as it is found when it is opened */
typedef struct Instance
{
	int64		id;
	bool		closed;
} Instance;

extern void instance_open(Oid inbox, const text *sequence_name,
						  const text *context_id,
						  const Interval *retention_period, bool recording,
						  Instance *instance);
extern void instance_hold(Oid inbox, int64 id);
extern bool instance_try_hold(Oid inbox, int64 id);
extern void instance_require(Oid inbox, int64 id);
extern bool instance_is_closed(Oid inbox, int64 id);
extern void instance_set_due(Oid inbox, int64 id, TimestampTz due_at);
extern bool instance_finish(Oid inbox, int64 id);
extern void instance_close_if_complete(Oid inbox, int64 id);
extern void instance_unknown(int64 id) pg_attribute_noreturn();

#endif							/* SEQINBOX_INSTANCE_H */
