/*-------------------------------------------------------------------------
 *
 * delivery.h
 *	  Deliveries of messages, and what becomes of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_DELIVERY_H
#define SEQINBOX_DELIVERY_H

#include "declaration.h"
#include "inbox.h"
#include "instance.h"
#include "message.h"

typedef enum Outcome
{
	OUTCOME_PROCESS,
	OUTCOME_BUFFERED,
	OUTCOME_DUPLICATE,
	OUTCOME_RECORDED,
	OUTCOME_UNSEQUENCED
} Outcome;

/* the instance of one context, and what its deliveries do to it */
typedef struct DeliveryInstance
{
	Instance	instance;
	ProcessedTypes types;
	InstanceEnd end;
	bool		written;
} DeliveryInstance;

typedef struct Delivery
{
	/* filled in by the caller */
	Message		message;
	text	   *context_id;		/* NULL: not to be sequenced */
	int			ordinal;		/* place in its batch, from 1 */
	bool		handed_over;	/* not for the caller to process */

	/* found out on the way; shared by deliveries of the same type, context */
	const Declaration *declaration;
	DeliveryInstance *instance;
	Lookup		lookup;
	bool		claimed;

	/* the result */
	Outcome		outcome;
	bool		recorded;		/* id, instance_id and attempts are set */
	int64		id;
	int64		instance_id;
	int32		attempts;
	bool		release_due;
} Delivery;

extern void deliveries_open(Oid inbox, Delivery *deliveries, int count);
extern void deliveries_receive(Oid inbox, Delivery *deliveries, int count);

#endif							/* SEQINBOX_DELIVERY_H */
