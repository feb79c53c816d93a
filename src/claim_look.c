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

#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/skey.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "claim.h"
#include "compat.h"

#define KEY_COLUMNS 2

/*
 * The key is compared as text, so it has to be one.
 */
static bool
key_column_is(Relation claims, Relation index, int n, const char *name)
{
	AttrNumber	attnum = index->rd_index->indkey.values[n];
	TupleDesc	columns = RelationGetDescr(claims);

	return attnum > 0 && index->rd_opcintype[n] == TEXTOID &&
		namestrcmp(&TupleDescAttr(columns, attnum - 1)->attname, name) == 0;
}

static bool
is_key(Relation claims, Relation index)
{
	Form_pg_index form = index->rd_index;

	return form->indisunique && form->indisvalid && form->indimmediate &&
		index->rd_rel->relam == BTREE_AM_OID &&
		form->indnkeyatts == KEY_COLUMNS &&
		heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL) &&
		key_column_is(claims, index, 0, "message_type") &&
		key_column_is(claims, index, 1, "idempotence_id");
}

static Relation
open_if_key(Relation claims, Oid oid)
{
	Relation	index = index_open(oid, AccessShareLock);

	if (is_key(claims, index))
		return index;
	index_close(index, AccessShareLock);
	return NULL;
}

/*
 * The unique index of the claim's key, whatever its name, or NULL: then the
 * caller has to do without looking.
 */
static Relation
open_key(Relation claims)
{
	List	   *oids;
	ListCell   *lc;
	Relation	key = NULL;

	if (claims->rd_rel->relkind != RELKIND_RELATION)
		return NULL;

	oids = RelationGetIndexList(claims);
	if (OidIsValid(claims->rd_pkindex))
		key = open_if_key(claims, claims->rd_pkindex);
	foreach(lc, oids)
	{
		if (key != NULL)
			break;
		key = open_if_key(claims, lfirst_oid(lc));
	}
	list_free(oids);
	return key;
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
 * Unknown is the answer where looking is not possible or not permitted.
 */
ClaimLook
claim_look(Oid inbox, const ClaimKey *key)
{
	RangeVar   *name = makeRangeVar(get_namespace_name(inbox),
									pstrdup(CLAIM_TABLE), -1);
	Relation	claims = table_openrv(name, RowExclusiveLock);
	Relation	index = open_key(claims);
	ClaimLook	look = CLAIM_LOOKS_UNKNOWN;

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
