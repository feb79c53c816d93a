/*-------------------------------------------------------------------------
 *
 * declaration.h
 *	  Declared sequences and their message types.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_DECLARATION_H
#define SEQINBOX_DECLARATION_H

#include "utils/timestamp.h"

#include "compat.h"
#include "condition.h"
#include "inbox.h"

/* the declaration of a message type, with that of its sequence */
typedef struct Declaration
{
	text	   *message_type;
	text	   *sequence_name;
	Interval	retention_period;
	bool		recording;		/* sequencing has not yet started */
	Condition  *condition;		/* or NULL */
} Declaration;

extern void declaration_of_type(Oid inbox, const text *message_type,
								Declaration *declaration);
extern bool declared_retention(Oid inbox, const text *sequence_name,
							   Interval *retention_period);
extern bool declarations_try_hold(Oid inbox);
extern List *declared_types(Oid inbox, const text *sequence_name);
extern List *declared_types_to_release(Oid inbox, int64 instance_id,
									   const text *sequence_name,
									   TimestampTz now);
pg_noreturn_compat extern void undeclared_sequence(const text *sequence_name, const char *hint);

#endif							/* SEQINBOX_DECLARATION_H */
