/*-------------------------------------------------------------------------
 *
 * delivery.c
 *	  Decides what becomes of deliveries.
 *
 * One delivery is a batch of one.  Each kind of lock is taken for all
 * deliveries of a batch before the next kind, and in a sorted order: first
 * the instances, then the claims, and in the end the instances that have to
 * be written.  So two batches that overlap cannot deadlock.  Between that,
 * the deliveries are decided in the order in which they came.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"

#include "claim.h"
#include "delivery.h"
#include "payload.h"
#include "release.h"
#include "texts.h"

typedef int (*DeliveryOrder)(const Delivery *a, const Delivery *b);

static int
by_type(const Delivery *a, const Delivery *b)
{
	return text_compare(a->message.key.message_type,
						b->message.key.message_type);
}

static int
by_key(const Delivery *a, const Delivery *b)
{
	int			order = by_type(a, b);

	if (order != 0)
		return order;
	return text_compare(a->message.key.idempotence_id,
						b->message.key.idempotence_id);
}

static int
by_instance(const Delivery *a, const Delivery *b)
{
	int			order = text_compare(a->declaration->sequence_name,
									 b->declaration->sequence_name);

	if (order != 0)
		return order;
	return text_compare(a->context_id, b->context_id);
}

/*
 * Deliveries that compare as equal are left in the order of their arrival.
 */
static int
by_arrival(const Delivery *a pg_attribute_unused(),
		   const Delivery *b pg_attribute_unused())
{
	return 0;
}

/*
 * Sorts pointers to deliveries.  Equal ones stay in the order in which they
 * came, which qsort() alone does not promise.
 */
static int
compare_deliveries(const void *a, const void *b, void *arg)
{
	const Delivery *left = *(Delivery *const *) a;
	const Delivery *right = *(Delivery *const *) b;
	int			order = (*(DeliveryOrder *) arg)(left, right);

	return order != 0 ? order : left->ordinal - right->ordinal;
}

static void
sort_deliveries(Delivery **deliveries, int count, DeliveryOrder order)
{
	qsort_arg(deliveries, count, sizeof(Delivery *), compare_deliveries,
			  &order);
}

static bool
same_as_before(Delivery **deliveries, int i, DeliveryOrder order)
{
	return i > 0 && order(deliveries[i - 1], deliveries[i]) == 0;
}

static void
find_declarations(Oid inbox, Delivery **sorted, int count)
{
	sort_deliveries(sorted, count, by_type);
	for (int i = 0; i < count; i++)
	{
		Declaration *declaration;

		if (same_as_before(sorted, i, by_type))
		{
			sorted[i]->declaration = sorted[i - 1]->declaration;
			continue;
		}
		declaration = palloc(sizeof(Declaration));
		declaration_of_type(inbox, sorted[i]->message.key.message_type,
							declaration);
		sorted[i]->declaration = declaration;
	}
}

static void
open_instances(Oid inbox, Delivery **sorted, int count)
{
	sort_deliveries(sorted, count, by_instance);
	for (int i = 0; i < count; i++)
	{
		const Declaration *declaration = sorted[i]->declaration;

		if (same_as_before(sorted, i, by_instance))
		{
			sorted[i]->instance = sorted[i - 1]->instance;
			continue;
		}
		sorted[i]->instance = palloc0(sizeof(Instance));
		instance_open(inbox, declaration->sequence_name,
					  sorted[i]->context_id, &declaration->retention_period,
					  declaration->recording, sorted[i]->instance);
	}
}

/*
 * Takes a claim from a message that failed.  Such a claim belongs to nobody:
 * whoever had it has committed it, and the failure as well, without freeing
 * it; nobody else could bring the message back.
 */
static bool
take_over(Oid inbox, const Delivery *delivery)
{
	const ClaimKey *key = &delivery->message.key;
	Record		record;

	if (!message_lookup_current(inbox, key, &record) ||
		!state_is(record.state, STATE_FAILED))
		return false;
	(void) claim_delete(inbox, key);
	return claim_take(inbox, key, delivery->instance->id);
}

/*
 * Of deliveries of the same message in one batch, the first has the claim.
 */
static void
take_claims(Oid inbox, Delivery **sorted, int count)
{
	sort_deliveries(sorted, count, by_key);
	for (int i = 0; i < count; i++)
	{
		if (same_as_before(sorted, i, by_key))
			continue;
		sorted[i]->claimed = claim_take(inbox, &sorted[i]->message.key,
										sorted[i]->instance->id) ||
			take_over(inbox, sorted[i]);
	}
}

static void
set_record(Delivery *delivery, const Record *record)
{
	delivery->recorded = true;
	delivery->id = record->id;
	delivery->instance_id = record->instance_id;
	delivery->attempts = record->attempts;
}

/*
 * A duplicate of a message that was only claimed has no record.
 */
static void
report_duplicate(Oid inbox, Delivery *delivery)
{
	Record		record;

	delivery->outcome = OUTCOME_DUPLICATE;
	if (message_lookup(inbox, &delivery->message.key, &record))
		set_record(delivery, &record);
}

/*
 * Does a look show that the message was claimed, and its record that it did
 * not fail since?  Then it is a duplicate, known without a lock or a write.
 */
static bool
is_known_duplicate(Oid inbox, Delivery *delivery)
{
	Record		record;

	if (!claim_is_taken(inbox, &delivery->message.key))
		return false;
	if (!message_lookup(inbox, &delivery->message.key, &record))
		return true;
	if (state_is(record.state, STATE_FAILED))
		return false;
	set_record(delivery, &record);
	return true;
}

/*
 * A closed instance keeps nobody waiting: its sequence is over.
 *
 * A message that its caller does not process is buffered whatever its
 * condition says: only a drain hands out the payload, and offers it again if
 * that fails.
 */
static Outcome
choose_outcome(Oid inbox, const Delivery *delivery)
{
	const Declaration *declaration = delivery->declaration;

	if (delivery->handed_over)
		return OUTCOME_BUFFERED;
	if (declaration->recording)
		return OUTCOME_RECORDED;
	if (delivery->instance->closed ||
		release_condition_holds(inbox, delivery->instance->id,
								declaration->condition))
		return OUTCOME_PROCESS;
	return OUTCOME_BUFFERED;
}

/*
 * Records a delivery that has the claim.  Only a failed record of the message
 * is written over; any other, which may be older than claims are, makes this
 * delivery a duplicate.
 *
 * False when the record changed since it was read.
 */
static bool
decide_claimed(Oid inbox, Delivery *delivery)
{
	Verdict		verdict = {STATE_PROCESSED, NULL, DT_NOEND};
	int64		instance_id = delivery->instance->id;
	Record		record;
	bool		found;

	found = message_lookup_current(inbox, &delivery->message.key, &record);
	if (found && !state_is(record.state, STATE_FAILED))
	{
		delivery->outcome = OUTCOME_DUPLICATE;
		set_record(delivery, &record);
		return true;
	}

	delivery->outcome = choose_outcome(inbox, delivery);
	if (delivery->outcome == OUTCOME_BUFFERED)
		verdict.state = STATE_WAITING;
	if (!found)
	{
		memset(&record, 0, sizeof(record));
		record.id = message_insert(inbox, instance_id, &delivery->message,
								   &verdict);
	}
	else if (!message_update(inbox, record.id, instance_id,
							 &delivery->message, &verdict))
		return false;
	else
		payload_drop(inbox, record.id);

	if (delivery->outcome == OUTCOME_BUFFERED)
		payload_buffer(inbox, instance_id, record.id,
					   &delivery->message.payload);
	record.instance_id = instance_id;
	set_record(delivery, &record);
	return true;
}

static void
decide(Oid inbox, Delivery *delivery)
{
	if (!delivery->claimed)
	{
		report_duplicate(inbox, delivery);
		return;
	}
	while (!decide_claimed(inbox, delivery))
		CHECK_FOR_INTERRUPTS();
}

/*
 * True when the instance has messages that wait.  What this transaction
 * buffered itself need not be looked for.
 */
static bool
finish_instance(Oid inbox, int64 instance_id, bool buffered)
{
	if (!buffered)
		return instance_finish(inbox, instance_id);
	instance_set_due(inbox, instance_id,
					 GetCurrentTransactionStartTimestamp());
	return true;
}

static void
finish_instances(Oid inbox, Delivery **sorted, int count)
{
	int			first = 0;

	sort_deliveries(sorted, count, by_instance);
	while (first < count)
	{
		bool		written = false;
		bool		buffered = false;
		int			end = first;

		while (end < count && sorted[end]->instance == sorted[first]->instance)
		{
			written |= sorted[end]->outcome != OUTCOME_DUPLICATE;
			buffered |= sorted[end]->outcome == OUTCOME_BUFFERED;
			end++;
		}
		if (written &&
			finish_instance(inbox, sorted[first]->instance->id, buffered))
		{
			for (int i = first; i < end; i++)
				sorted[i]->release_due =
					sorted[i]->outcome != OUTCOME_DUPLICATE;
		}
		first = end;
	}
}

/*
 * Deliveries that have to be sequenced, less those of which a look shows that
 * their claim was committed: duplicates then cost no lock and no write.
 */
static int
pick_new(Oid inbox, Delivery **deliveries, int count)
{
	int			picked = 0;

	for (int i = 0; i < count; i++)
	{
		Delivery   *delivery = deliveries[i];

		if (delivery->context_id == NULL)
			delivery->outcome = OUTCOME_UNSEQUENCED;
		else if (is_known_duplicate(inbox, delivery))
			delivery->outcome = OUTCOME_DUPLICATE;
		else
			deliveries[picked++] = delivery;
	}
	return picked;
}

static Delivery **
pointers_to(Delivery *deliveries, int count)
{
	Delivery  **pointers = palloc(sizeof(Delivery *) * (count + 1));

	for (int i = 0; i < count; i++)
		pointers[i] = &deliveries[i];
	return pointers;
}

/*
 * Only opens the instances, for a caller that has something to do first.
 */
void
deliveries_open(Oid inbox, Delivery *deliveries, int count)
{
	Delivery  **sorted = pointers_to(deliveries, count);

	find_declarations(inbox, sorted, count);
	open_instances(inbox, sorted, count);
}

void
deliveries_receive(Oid inbox, Delivery *deliveries, int count)
{
	Delivery  **sorted = pointers_to(deliveries, count);

	find_declarations(inbox, sorted, count);
	sort_deliveries(sorted, count, by_arrival);
	count = pick_new(inbox, sorted, count);
	open_instances(inbox, sorted, count);
	take_claims(inbox, sorted, count);

	sort_deliveries(sorted, count, by_arrival);
	for (int i = 0; i < count; i++)
		decide(inbox, sorted[i]);
	finish_instances(inbox, sorted, count);
}
