/*-------------------------------------------------------------------------
 *
 * operations.c
 *	  The SQL-callable functions with which an operator steps in, and the one
 *	  that tells whether a message may be released.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"

#include "args.h"
#include "dead_letter.h"
#include "declaration.h"
#include "drain.h"
#include "inbox.h"
#include "instance.h"
#include "message.h"
#include "payload.h"
#include "release.h"

PG_FUNCTION_INFO_V1(seqinbox_is_releasable);
Datum
seqinbox_is_releasable(PG_FUNCTION_ARGS)
{
	text	   *message_type = arg_name(fcinfo, 0, "message_type",
										MAX_TYPE_LENGTH);
	int64		instance_id = arg_id(fcinfo, 1, "sequence_instance_id");
	Oid			inbox = inbox_in_use();
	Declaration declaration;
	bool		releasable;

	SPI_connect();
	declaration_of_type(inbox, message_type, &declaration);
	releasable = instance_is_closed(inbox, instance_id) ||
		declaration.recording ||
		release_condition_holds(inbox, instance_id, declaration.condition);
	SPI_finish();

	PG_RETURN_BOOL(releasable);
}

/*
 * Holds the instance of a message, before the message itself is locked.
 */
static int64
hold_instance_of(Oid inbox, int64 id)
{
	Record		record;
	ClaimKey	key;

	message_get(inbox, id, &record, &key);
	instance_hold(inbox, record.instance_id);
	return record.instance_id;
}

PG_FUNCTION_INFO_V1(seqinbox_consume);
Datum
seqinbox_consume(PG_FUNCTION_ARGS)
{
	int64		id = arg_id(fcinfo, 0, "id");
	Oid			inbox = inbox_in_use();
	int64		instance_id;

	SPI_connect();
	instance_id = hold_instance_of(inbox, id);
	message_set_consume(inbox, id);
	instance_set_due(inbox, instance_id, GetCurrentTimestamp());
	SPI_finish();

	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(seqinbox_expire);
Datum
seqinbox_expire(PG_FUNCTION_ARGS)
{
	int64		id = arg_id(fcinfo, 0, "id");
	Oid			inbox = inbox_in_use();
	int64		instance_id;

	SPI_connect();
	instance_id = hold_instance_of(inbox, id);
	if (!message_expire(inbox, id))
		message_refuse(inbox, id);
	(void) instance_finish(inbox, instance_id);
	SPI_finish();

	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(seqinbox_retry);
Datum
seqinbox_retry(PG_FUNCTION_ARGS)
{
	int64		id = arg_id(fcinfo, 0, "id");
	Oid			inbox = inbox_in_use();
	TimestampTz now = GetCurrentTimestamp();
	int64		instance_id;

	SPI_connect();
	instance_id = hold_instance_of(inbox, id);
	if (!message_set_retry(inbox, id, now))
		message_refuse(inbox, id);
	payload_require(inbox, id);
	instance_set_due(inbox, instance_id, now);
	SPI_finish();

	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(seqinbox_consume_all);
Datum
seqinbox_consume_all(PG_FUNCTION_ARGS)
{
	int64		instance_id = arg_id(fcinfo, 0, "sequence_instance_id");
	Oid			inbox = inbox_in_use();

	SPI_connect();
	drain_set_consume_all(inbox, instance_id);
	SPI_finish();

	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(seqinbox_close);
Datum
seqinbox_close(PG_FUNCTION_ARGS)
{
	int64		instance_id = arg_id(fcinfo, 0, "sequence_instance_id");
	Oid			inbox = inbox_in_use();
	DrainedInstance instance;

	SPI_connect();
	drain_lock(inbox, instance_id, &instance);
	drain_close(inbox, instance.id);
	SPI_finish();

	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(seqinbox_dead_letter);
Datum
seqinbox_dead_letter(PG_FUNCTION_ARGS)
{
	int64		id = arg_id(fcinfo, 0, "id");
	text	   *reason = arg_name(fcinfo, 1, "reason", MAX_REASON_LENGTH);
	Oid			inbox = inbox_in_use();
	int64		instance_id;
	int64		letter_id;

	SPI_connect();
	instance_id = hold_instance_of(inbox, id);
	letter_id = dead_letter_bury(inbox, id, reason);
	(void) instance_finish(inbox, instance_id);
	SPI_finish();

	PG_RETURN_INT64(letter_id);
}
