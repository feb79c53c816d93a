/*-------------------------------------------------------------------------
 *
 * dead_letter.h
 *	  Dead letters: messages that were never processed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_DEAD_LETTER_H
#define SEQINBOX_DEAD_LETTER_H

#include "utils/timestamp.h"

#include "inbox.h"
#include "message.h"

/* a dead letter that is taken out again */
typedef struct DeadLetter
{
	Message		message;
	text	   *context_id;
} DeadLetter;

extern int64 dead_letter_bury(Oid inbox, int64 message_id,
							  const text *reason);
extern int64 dead_letters_bury_instances(Oid inbox, Datum instance_ids,
										 const char *reason);
extern void dead_letter_exhume(Oid inbox, int64 id, DeadLetter *letter);
extern int64 dead_letters_purge(Oid inbox, TimestampTz before, int limit);

#endif							/* SEQINBOX_DEAD_LETTER_H */
