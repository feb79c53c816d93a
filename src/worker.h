/*-------------------------------------------------------------------------
 *
 * worker.h
 *	  The background workers that do the housekeeping.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_WORKER_H
#define SEQINBOX_WORKER_H

/* setting seqinbox.housekeeping_databases, names with commas between them */
extern char *housekeeping_databases;

/* setting seqinbox.housekeeping_interval, in seconds */
extern int	housekeeping_interval;

extern void worker_register_launcher(void);

#endif							/* SEQINBOX_WORKER_H */
