/*-------------------------------------------------------------------------
 *
 * drain.h
 *	  Draining an instance: handing out its messages one by one.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_DRAIN_H
#define SEQINBOX_DRAIN_H

#include "inbox.h"
#include "message.h"

/* pending_action of an instance, which other programs may write too */
#define ACTION_CONSUME_ALL "CONSUME_ALL"
#define ACTION_CLOSE "CLOSE"

/* an instance that this transaction holds FOR UPDATE */
typedef struct DrainedInstance
{
	int64		id;
	text	   *name;
	text	   *context_id;
	bool		unconditional;	/* closed, or sequencing has not yet started */
	bool		consume_all;
	bool		close;
} DrainedInstance;

/* a message that was marked PROCESSED and is now to be handled */
typedef struct ReleasedMessage
{
	int64		id;
	Message		message;
	int32		attempts;
	TimestampTz received_at;
} ReleasedMessage;

extern void drain_lock(Oid inbox, int64 instance_id,
					   DrainedInstance *instance);
extern bool drain_lock_any(Oid inbox, DrainedInstance *instance);
extern bool drain_release(Oid inbox, const DrainedInstance *instance,
						  ReleasedMessage *released);
extern void drain_close(Oid inbox, int64 instance_id);
extern void drain_set_consume_all(Oid inbox, int64 instance_id);

#endif							/* SEQINBOX_DRAIN_H */
