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
#include "nodes/pg_list.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "claim.h"
#include "compat.h"
#include "payload.h"
#include "sql.h"
#include "traceparent.h"

#define STATE_WAITING "WAITING"
#define STATE_PROCESSED "PROCESSED"
#define STATE_FAILED "FAILED"

/* pending_action, which other programs may write too */
#define ACTION_CONSUME "CONSUME"
#define ACTION_EXPIRE "EXPIRE"

/*
 * SQL: message m is one to hand out, as soon as the condition of its type
 * holds.  A failed one is when its time to be offered again has come.
 */
#define MESSAGE_TO_RELEASE(now) \
	"(m.state" EQ "'" STATE_WAITING "' OR" \
	" (m.state" EQ "'" STATE_FAILED "' AND m.retry_at" LE now "))"

/* SQL: message m has not been processed and is not being given up */
#define MESSAGE_IS_UNPROCESSED \
	"(m.state" EQ "'" STATE_WAITING "' OR m.state" EQ "'" STATE_FAILED "')"

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

/* the record that counts for a key */
typedef struct Lookup
{
	const ClaimKey *key;
	bool		found;
	Record		record;
} Lookup;

/* which of the types that matter have been processed in an instance */
typedef struct ProcessedTypes
{
	int64		instance_id;
	List	   *types;
	List	   *processed;
} ProcessedTypes;

/* a message that is taken in: PROCESSED or WAITING */
typedef struct NewMessage
{
	const Message *message;
	int64		instance_id;
	const char *state;
	int64		id;				/* the result */
} NewMessage;

/* what is to be recorded */
typedef struct Verdict
{
	const char *state;
	const text *error;			/* or NULL */
	TimestampTz retry_at;		/* or DT_NOEND: not by itself */
} Verdict;

extern void message_from_args(FunctionCallInfo fcinfo, int first_payload_arg,
							  Message *message);
extern void message_check_size(const Message *message);
extern bool state_is(const char *state, const char *other);
extern const char *state_from_arg(FunctionCallInfo fcinfo, int n);

extern bool message_lookup(Oid inbox, const ClaimKey *key, Record *record);
extern bool message_lookup_current(Oid inbox, const ClaimKey *key,
								   Record *record);
extern void messages_lookup(Oid inbox, Lookup **lookups, int count);
extern void messages_lookup_current(Oid inbox, Lookup **lookups, int count);
pg_noreturn_compat extern void serialization_failure(void);
extern void message_get(Oid inbox, int64 id, Record *record, ClaimKey *key);
pg_noreturn_compat extern void message_refuse_state(const Record *record);
pg_noreturn_compat extern void message_refuse(Oid inbox, int64 id);

extern void message_read_trace(int first_column, TraceContext *trace);
extern List *message_processed_types(Oid inbox, int64 instance_id,
									 const List *message_types);
extern void messages_processed_types(Oid inbox, ProcessedTypes **wanted,
									 int count);
extern int64 message_insert(Oid inbox, int64 instance_id,
							const Message *message, const Verdict *verdict);
extern bool message_insert_first(Oid inbox, NewMessage *message, bool *waits,
								 bool *complete);
extern void messages_insert(Oid inbox, NewMessage *messages, int count);
extern bool message_update(Oid inbox, int64 id, int64 instance_id,
						   const Message *message, const Verdict *verdict);
extern void message_set_consume(Oid inbox, int64 id);
extern bool message_set_retry(Oid inbox, int64 id, TimestampTz retry_at);
extern bool message_expire(Oid inbox, int64 id);
extern bool message_set_failed(Oid inbox, int64 id, const Verdict *verdict);

#endif							/* SEQINBOX_MESSAGE_H */
