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

#include "compat.h"
#include "inbox.h"
#include "message.h"
#include "sql.h"

#define INSTANCE_OPEN "OPEN"
#define INSTANCE_CLOSED "CLOSED"

/*
 * SQL: does instance i have messages to release, now or when their condition
 * holds?
 */
#define INSTANCE_WAITS(now) \
	"EXISTS (SELECT 1 FROM $inbox.sequenced_message m" \
	" WHERE m.sequence_instance_id" EQ "i.id" \
	" AND " MESSAGE_TO_RELEASE(now) ")"

/*
 * SQL: has every declared type been processed in instance i, or every other
 * than the one that is just being processed?  A sequence that is no longer
 * declared lacks nothing.
 */
#define INSTANCE_IS_COMPLETE INSTANCE_LACKS_NO_TYPE("")
#define INSTANCE_IS_COMPLETE_WITH(message_type) \
	INSTANCE_LACKS_NO_TYPE(" d.message_type" NE message_type " AND")
#define INSTANCE_LACKS_NO_TYPE(which) \
	"NOT EXISTS (SELECT 1 FROM" \
	" (SELECT t.message_type" AS_DEFAULT " AS message_type" \
	" FROM $inbox.message_type_declaration t" \
	" WHERE t.sequence_name" EQ "i.name" AS_C ") AS d" \
	" WHERE" which " (SELECT true FROM $inbox.sequenced_message m" \
	" WHERE m.sequence_instance_id" EQ "i.id" \
	" AND m.message_type" EQ "d.message_type" \
	" AND m.state" EQ "'" STATE_PROCESSED "'" \
	" LIMIT 1) IS NULL)"

typedef struct Instance
{
	/* which one is wanted */
	const text *sequence_name;
	const text *context_id;
	const Interval *retention_period;
	bool		recording;

	/* as it is found when it is opened */
	int64		id;
	bool		closed;
} Instance;

/* an instance as it is to be left */
typedef struct InstanceEnd
{
	int64		id;
	bool		known;			/* what follows is */
	bool		waits;			/* it has messages that wait */
	bool		complete;
} InstanceEnd;

extern void instance_open(Oid inbox, Instance *instance);
extern void instances_open(Oid inbox, Instance **instances, int count);
extern void instance_hold(Oid inbox, int64 id);
extern bool instance_try_hold(Oid inbox, int64 id);
extern void instance_require(Oid inbox, int64 id);
extern bool instance_is_closed(Oid inbox, int64 id);
extern void instance_set_due(Oid inbox, int64 id, TimestampTz due_at);
extern bool instance_finish(Oid inbox, int64 id);
extern void instance_leave(Oid inbox, const InstanceEnd *end,
						   TimestampTz due_at);
extern void instances_finish(Oid inbox, InstanceEnd **ends, int count,
							 TimestampTz due_at);
extern void instance_close_if_complete(Oid inbox, int64 id);
pg_noreturn_compat extern void instance_unknown(int64 id);

#endif							/* SEQINBOX_INSTANCE_H */
