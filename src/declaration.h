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

#include "inbox.h"

/* the declaration of a message type, with that of its sequence */
typedef struct Declaration
{
	text	   *sequence_name;
	Interval	retention_period;
} Declaration;

extern void declaration_of_type(Oid inbox, const text *message_type,
								Declaration *declaration);
extern bool declared_retention(Oid inbox, const text *sequence_name,
							   Interval *retention_period);

#endif							/* SEQINBOX_DECLARATION_H */
