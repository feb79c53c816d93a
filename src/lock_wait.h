/*-------------------------------------------------------------------------
 *
 * lock_wait.h
 *	  Doing something only if it need not wait long for a lock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_LOCK_WAIT_H
#define SEQINBOX_LOCK_WAIT_H

extern bool lock_wait_at_most(const char *timeout, void (*action)(void *arg),
							  void *arg);

#endif							/* SEQINBOX_LOCK_WAIT_H */
