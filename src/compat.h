/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  What differs between the supported server versions, 13 to 18.
 *
 * Nothing else in this extension asks for the version.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_COMPAT_H
#define SEQINBOX_COMPAT_H

#include "access/genam.h"
#include "utils/guc.h"
#include "utils/plancache.h"
#include "utils/resowner.h"

#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

#if PG_VERSION_NUM >= 140000
#define ReleaseCachedPlan_compat(plan) \
	ReleaseCachedPlan(plan, CurrentResourceOwner)
#else
#define ReleaseCachedPlan_compat(plan) \
	ReleaseCachedPlan(plan, true)
#endif

#if PG_VERSION_NUM >= 150000
#define MarkGUCPrefixReserved_compat(prefix) MarkGUCPrefixReserved(prefix)
#else
#define MarkGUCPrefixReserved_compat(prefix) EmitWarningsOnPlaceholders(prefix)
#endif

#if PG_VERSION_NUM >= 180000
#define index_beginscan_compat(heap, index, snapshot, nkeys) \
	index_beginscan(heap, index, snapshot, NULL, nkeys, 0)
#else
#define index_beginscan_compat(heap, index, snapshot, nkeys) \
	index_beginscan(heap, index, snapshot, nkeys, 0)
#endif

#endif							/* SEQINBOX_COMPAT_H */
