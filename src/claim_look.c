/*-------------------------------------------------------------------------
 *
 * claim_look.c
 *	  Looks at a claim without waiting for the transaction that is deciding
 *	  on it.
 *
 * No SQL statement can tell an undecided row from none, so this reads the
 * primary key's index itself, with a snapshot that sees undecided rows too.
 * It only looks, and the answer is out of date at once: whoever acts on it
 * lets a statement decide.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relscan.h"
#include "access/skey.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/namespace.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "claim.h"
#include "compat.h"

#define KEY_COLUMNS 2

static bool
key_column_is(Relation claims, Relation index, int n, const char *name)
{
	AttrNumber	attnum = index->rd_index->indkey.values[n];

	return attnum == get_attnum(RelationGetRelid(claims), name);
}

/*
 * The primary key, or NULL when it is not what it should be: then the caller
 * has to do without looking.
 */
static Relation
open_key(Relation claims)
{
	Oid			relid = get_relname_relid(CLAIM_KEY,
										  RelationGetNamespace(claims));
	Relation	index;

	if (claims->rd_rel->relkind != RELKIND_RELATION || !OidIsValid(relid) ||
		get_rel_relkind(relid) != RELKIND_INDEX)
		return NULL;

	index = index_open(relid, AccessShareLock);
	if (index->rd_index->indrelid == RelationGetRelid(claims) &&
		index->rd_index->indisvalid &&
		index->rd_index->indnkeyatts == KEY_COLUMNS &&
		key_column_is(claims, index, 0, "message_type") &&
		key_column_is(claims, index, 1, "idempotence_id"))
		return index;

	index_close(index, AccessShareLock);
	return NULL;
}

static ClaimLook
look_at_rows(Relation claims, Relation index, const ClaimKey *key)
{
	Datum		wanted[KEY_COLUMNS];
	ScanKeyData scankeys[KEY_COLUMNS];
	SnapshotData snapshot;
	IndexScanDesc scan;
	TupleTableSlot *slot;
	ClaimLook	look = CLAIM_LOOKS_FREE;

	wanted[0] = PointerGetDatum(key->message_type);
	wanted[1] = PointerGetDatum(key->idempotence_id);
	for (int i = 0; i < KEY_COLUMNS; i++)
		ScanKeyEntryInitialize(&scankeys[i], 0, i + 1,
							   BTEqualStrategyNumber, InvalidOid,
							   index->rd_indcollation[i], F_TEXTEQ,
							   wanted[i]);

	InitDirtySnapshot(snapshot);
	slot = table_slot_create(claims, NULL);
	scan = index_beginscan_compat(claims, index, &snapshot, KEY_COLUMNS);
	index_rescan(scan, scankeys, KEY_COLUMNS, NULL, 0);

	while (look != CLAIM_LOOKS_UNDECIDED &&
		   index_getnext_slot(scan, ForwardScanDirection, slot))
	{
		/* set when another transaction is inserting or deleting the row */
		if (TransactionIdIsValid(snapshot.xmin) ||
			TransactionIdIsValid(snapshot.xmax))
			look = CLAIM_LOOKS_UNDECIDED;
		else
			look = CLAIM_LOOKS_TAKEN;
	}

	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	return look;
}

/*
 * Free is also the answer where looking is not possible or not permitted;
 * the insert that follows says why.
 */
ClaimLook
claim_look(Oid inbox, const ClaimKey *key)
{
	RangeVar   *name = makeRangeVar(get_namespace_name(inbox),
									pstrdup(CLAIM_TABLE), -1);
	Relation	claims = table_openrv(name, RowExclusiveLock);
	Relation	index = open_key(claims);
	ClaimLook	look = CLAIM_LOOKS_FREE;

	if (index != NULL)
	{
		if (pg_class_aclcheck(RelationGetRelid(claims), GetUserId(),
							  ACL_INSERT) == ACLCHECK_OK)
			look = look_at_rows(claims, index, key);
		index_close(index, AccessShareLock);
	}
	table_close(claims, NoLock);
	return look;
}
