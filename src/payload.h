/*-------------------------------------------------------------------------
 *
 * payload.h
 *	  Key, value and headers of a message, and how they are buffered.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_PAYLOAD_H
#define SEQINBOX_PAYLOAD_H

#include "utils/array.h"

#include "inbox.h"

/* value is null for a tombstone, which is not the same as an empty value */
typedef struct Payload
{
	bytea	   *value;
	bytea	   *key;
	ArrayType  *header_names;
	ArrayType  *header_values;
	int			header_count;
} Payload;

/* a payload to buffer, and for which message */
typedef struct PayloadOf
{
	const Payload *payload;
	int64		instance_id;
	int64		message_id;
} PayloadOf;

extern void payload_count_headers(Payload *payload);
extern bool payload_is_given(const Payload *payload);
extern void payload_buffer(Oid inbox, int64 instance_id, int64 message_id,
						   const Payload *payload);
extern void payloads_buffer(Oid inbox, const PayloadOf *payloads, int count);
extern void payload_move(Oid inbox, int64 instance_id, int64 message_id);
extern void payload_drop(Oid inbox, int64 message_id);
extern void payload_fetch(Oid inbox, int64 message_id, Payload *payload);
extern void payload_require(Oid inbox, int64 message_id);
extern bool payload_is_buffered(Oid inbox, int64 message_id);

#endif							/* SEQINBOX_PAYLOAD_H */
