/*-------------------------------------------------------------------------
 *
 * housekeeping.h
 *	  Closing and removing instances whose time has come.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_HOUSEKEEPING_H
#define SEQINBOX_HOUSEKEEPING_H

#include "utils/timestamp.h"

#include "inbox.h"

typedef struct HousekeepingOptions
{
	const Interval *removal_delay;
	int			batch_size;		/* instances, or dead letters, of one turn */
	const Interval *keep_dead_letters;	/* NULL: for ever */
} HousekeepingOptions;

/* what was done */
typedef struct HousekeepingReport
{
	int64		closed;			/* instances */
	int64		marked;			/* instances, to be removed later */
	int64		removed;		/* instances */
	int64		buried;			/* messages that became dead letters */
	int64		purged;			/* dead letters */
} HousekeepingReport;

typedef enum HousekeepingPhase
{
	PHASE_WINDOWS,				/* make those of the days to come */
	PHASE_SETTLE,				/* close, or mark for removal */
	PHASE_REMOVE,
	PHASE_PURGE,
	PHASE_DONE
} HousekeepingPhase;

/* one walk through an inbox */
typedef struct HousekeepingRun
{
	HousekeepingOptions options;
	HousekeepingPhase phase;
	HousekeepingReport report;

	/* the last instance that was seen in this phase */
	TimestampTz seen_retain_until;
	int64		seen_id;
} HousekeepingRun;

extern void housekeeping_begin(HousekeepingRun *run,
							   const HousekeepingOptions *options);
extern bool housekeeping_turn(Oid inbox, HousekeepingRun *run);
extern void housekeeping_log(const char *inbox_name,
							 const HousekeepingRun *run);

#endif							/* SEQINBOX_HOUSEKEEPING_H */
