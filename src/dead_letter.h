/*-------------------------------------------------------------------------
 *
 * dead_letter.h
 *	  Dead letters: messages that were never processed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_DEAD_LETTER_H
#define SEQINBOX_DEAD_LETTER_H

#include "inbox.h"

extern void dead_letters_bury_instance(Oid inbox, int64 instance_id,
									   const char *reason);

#endif							/* SEQINBOX_DEAD_LETTER_H */
