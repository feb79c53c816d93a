/*-------------------------------------------------------------------------
 *
 * idle.h
 *	  Limits how long a transaction with a claim may be idle.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_IDLE_H
#define SEQINBOX_IDLE_H

/* setting seqinbox.idle_timeout, in milliseconds; 0 for off */
extern int	idle_timeout;

extern void idle_limit(void);

#endif							/* SEQINBOX_IDLE_H */
