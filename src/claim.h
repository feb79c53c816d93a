/*-------------------------------------------------------------------------
 *
 * claim.h
 *	  The claim: the row that arbitrates concurrent deliveries of a message.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_CLAIM_H
#define SEQINBOX_CLAIM_H

#include "fmgr.h"
#include "inbox.h"

typedef struct ClaimKey
{
	text	   *message_type;
	text	   *idempotence_id;
} ClaimKey;

typedef enum ClaimResult
{
	CLAIM_WON,
	CLAIM_DUPLICATE,
	CLAIM_IN_FLIGHT				/* another transaction is deciding */
} ClaimResult;

typedef enum ClaimLook
{
	CLAIM_LOOKS_FREE,
	CLAIM_LOOKS_TAKEN,
	CLAIM_LOOKS_UNDECIDED,
	CLAIM_LOOKS_UNKNOWN			/* it could not be looked at */
} ClaimLook;

extern void claim_key_from_args(FunctionCallInfo fcinfo, ClaimKey *key);

/* a claim that is wanted, and whether it was won */
typedef struct ClaimWanted
{
	const ClaimKey *key;
	int64		instance_id;
	bool		won;
} ClaimWanted;

extern bool claim_take(Oid inbox, const ClaimKey *key, int64 instance_id);
extern void claims_take(Oid inbox, ClaimWanted *claims, int count);
extern bool claim_hold_and_take(Oid inbox, const ClaimKey *key,
								int64 instance_id);
extern bool claim_is_taken(Oid inbox, const ClaimKey *key);
extern bool claim_take_in_window(Oid inbox, const ClaimKey *key);
extern ClaimResult claim_try(Oid inbox, const ClaimKey *key,
							 int64 instance_id);
extern ClaimResult claim_try_in_window(Oid inbox, const ClaimKey *key);
extern bool claim_delete(Oid inbox, const ClaimKey *key);

extern ClaimLook claim_look(Oid inbox, const ClaimKey *key);

#endif							/* SEQINBOX_CLAIM_H */
