/*-------------------------------------------------------------------------
 *
 * window.h
 *	  The instances that claims without sequencing hang on.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_WINDOW_H
#define SEQINBOX_WINDOW_H

#include "inbox.h"

/* reserved name of the sequence that the windows belong to */
#define WINDOW_SEQUENCE "seqinbox.idempotence"

/* setting seqinbox.idempotence_retention, in seconds */
extern int	idempotence_retention;

extern bool is_window_sequence(const text *sequence_name);
extern text *window_context(void);
extern int64 window_find(Oid inbox, const text *context_id);
extern int64 window_private(Oid inbox);
extern void windows_make_ahead(Oid inbox);

#endif							/* SEQINBOX_WINDOW_H */
