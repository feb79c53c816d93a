/*-------------------------------------------------------------------------
 *
 * message.h
 *	  Sequenced messages: the record of one message in an instance.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_MESSAGE_H
#define SEQINBOX_MESSAGE_H

#include "fmgr.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "claim.h"
#include "payload.h"
#include "traceparent.h"

#define STATE_WAITING "WAITING"
#define STATE_PROCESSED "PROCESSED"
#define STATE_FAILED "FAILED"

/* what a delivery brings; a null pointer is a NULL argument */
typedef struct Message
{
	ClaimKey	key;
	Payload		payload;
	text	   *topic;
	text	   *cluster_name;
	pg_uuid_t  *uuid;
	TraceContext trace;
} Message;

/* the record of a message, as found */
typedef struct Record
{
	int64		id;
	const char *state;
	int64		instance_id;
	int32		attempts;
	TimestampTz created_at;
} Record;

/* what is to be recorded */
typedef struct Verdict
{
	const char *state;
	const text *error;			/* or NULL */
	TimestampTz retry_at;		/* or DT_NOEND: not by itself */
} Verdict;

extern void message_from_args(FunctionCallInfo fcinfo, int first_payload_arg,
							  Message *message);
extern const char *state_from_arg(FunctionCallInfo fcinfo, int n);

extern bool message_lookup(Oid inbox, const ClaimKey *key, Record *record);
extern bool message_get(Oid inbox, int64 id, Record *record, ClaimKey *key);
extern void message_refuse_state(const Record *record);

extern int64 message_insert(Oid inbox, int64 instance_id,
							const Message *message, const Verdict *verdict);
extern bool message_update(Oid inbox, int64 id, int64 instance_id,
						   const Message *message, const Verdict *verdict);
extern bool message_set_failed(Oid inbox, int64 id, const Verdict *verdict);

#endif							/* SEQINBOX_MESSAGE_H */
