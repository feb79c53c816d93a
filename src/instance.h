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

extern int64 instance_open(Oid inbox, const text *sequence_name,
						   const text *context_id,
						   const Interval *retention_period);
extern void instance_hold(Oid inbox, int64 id);
extern bool instance_try_hold(Oid inbox, int64 id);
extern uint64 instance_referring_run(Oid inbox, int64 id, const char *table,
									 const Statement *statement,
									 Datum *values, const char *nulls);
extern void instance_set_due(Oid inbox, int64 id, TimestampTz due_at);
extern void instance_set_due_if_waiting(Oid inbox, int64 id,
										TimestampTz due_at);

#endif							/* SEQINBOX_INSTANCE_H */
