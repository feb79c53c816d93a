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
#include "catalog/pg_class.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/plancache.h"
#include "utils/resowner.h"
#include "utils/tuplestore.h"

#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* stands before the declaration of a function that does not return */
#if PG_VERSION_NUM >= 180000
#define pg_noreturn_compat pg_noreturn
#else
#define pg_noreturn_compat pg_attribute_noreturn()
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

#if PG_VERSION_NUM >= 160000
#define pg_class_ownercheck_compat(relid, role) \
	object_ownercheck(RelationRelationId, relid, role)
#else
#define pg_class_ownercheck_compat(relid, role) \
	pg_class_ownercheck(relid, role)
#endif

#if PG_VERSION_NUM >= 180000
#define index_beginscan_compat(heap, index, snapshot, nkeys) \
	index_beginscan(heap, index, snapshot, NULL, nkeys, 0)
#else
#define index_beginscan_compat(heap, index, snapshot, nkeys) \
	index_beginscan(heap, index, snapshot, nkeys, 0)
#endif

#if PG_VERSION_NUM >= 150000
#define InitMaterializedSRF_compat(fcinfo) InitMaterializedSRF(fcinfo, 0)
#else

/*
 * Prepares a function to return its rows in a tuplestore, as the server's own
 * function does in later versions.
 */
static inline void
InitMaterializedSRF_compat(FunctionCallInfo fcinfo)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext old;
	TupleDesc	tupdesc;

	if (result == NULL || !IsA(result, ReturnSetInfo) ||
		(result->allowedModes & SFRM_Materialize) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("set-valued function called in context that cannot accept a set")));
	old = MemoryContextSwitchTo(result->econtext->ecxt_per_query_memory);
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	result->returnMode = SFRM_Materialize;
	result->setResult = tuplestore_begin_heap(true, false, work_mem);
	result->setDesc = tupdesc;
	MemoryContextSwitchTo(old);
}
#endif

#endif							/* SEQINBOX_COMPAT_H */
