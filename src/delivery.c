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

/*
 * The deliveries are sorted; those of one context share the instance.
 */
static int
share_instances(Delivery **sorted, int count, DeliveryInstance **instances)
{
	int			shared = 0;

	for (int i = 0; i < count; i++)
	{
		const Declaration *declaration = sorted[i]->declaration;
		DeliveryInstance *instance;

		if (same_as_before(sorted, i, by_instance))
		{
			sorted[i]->instance = sorted[i - 1]->instance;
			continue;
		}
		instance = palloc0(sizeof(DeliveryInstance));
		instance->instance.sequence_name = declaration->sequence_name;
		instance->instance.context_id = sorted[i]->context_id;
		instance->instance.retention_period = &declaration->retention_period;
		instance->instance.recording = declaration->recording;
		sorted[i]->instance = instance;
		instances[shared++] = instance;
	}
	return shared;
}

/*
 * Returns the number of instances, which are in the order of their locks.
 */
static int
open_instances(Oid inbox, Delivery **sorted, int count,
			   DeliveryInstance **instances)
{
	Instance  **wanted = palloc(sizeof(Instance *) * (count + 1));
	int			shared;

	sort_deliveries(sorted, count, by_instance);
	shared = share_instances(sorted, count, instances);
	for (int i = 0; i < shared; i++)
		wanted[i] = &instances[i]->instance;
	instances_open(inbox, wanted, shared);
	for (int i = 0; i < shared; i++)
	{
		instances[i]->types.instance_id = instances[i]->instance.id;
		instances[i]->end.id = instances[i]->instance.id;
	}
	return shared;
}

/*
 * Of deliveries of the same message in one batch, the first has the claim.
 */
static void
take_claims(Oid inbox, Delivery **sorted, int count)
{
	ClaimWanted *wanted = palloc(sizeof(ClaimWanted) * (count + 1));
	Delivery  **first = palloc(sizeof(Delivery *) * (count + 1));
	int			keys = 0;

	sort_deliveries(sorted, count, by_key);
	for (int i = 0; i < count; i++)
	{
		if (same_as_before(sorted, i, by_key))
			continue;
		wanted[keys].key = &sorted[i]->message.key;
		wanted[keys].instance_id = sorted[i]->instance->instance.id;
		first[keys++] = sorted[i];
	}
	claims_take(inbox, wanted, keys);
	for (int i = 0; i < keys; i++)
		first[i]->claimed = wanted[i].won;
}

/*
 * Looks up the record of each delivery that is claimed, or of each that is
 * not, and returns these deliveries in the order that they have.
 */
static int
look_up(Oid inbox, Delivery **deliveries, int count, bool claimed,
		Delivery **found)
{
	Lookup	  **lookups = palloc(sizeof(Lookup *) * (count + 1));
	int			wanted = 0;

	for (int i = 0; i < count; i++)
	{
		if (deliveries[i]->claimed != claimed)
			continue;
		lookups[wanted] = &deliveries[i]->lookup;
		found[wanted++] = deliveries[i];
	}
	if (claimed)
		messages_lookup_current(inbox, lookups, wanted);
	else
		messages_lookup(inbox, lookups, wanted);
	return wanted;
}

static bool
is_recorded_as_failed(const Delivery *delivery)
{
	return delivery->lookup.found &&
		state_is(delivery->lookup.record.state, STATE_FAILED);
}

/*
 * Takes claims from messages that failed.  Such a claim belongs to nobody:
 * whoever had it has committed it, and the failure as well, without freeing
 * it; nobody else could bring the message back.
 */
static void
take_over_claims(Oid inbox, Delivery **sorted, int count)
{
	for (int i = 0; i < count; i++)
	{
		const ClaimKey *key = &sorted[i]->message.key;
		Record		record;

		if (sorted[i]->claimed || same_as_before(sorted, i, by_key) ||
			!message_lookup_current(inbox, key, &record) ||
			!state_is(record.state, STATE_FAILED))
			continue;
		(void) claim_delete(inbox, key);
		sorted[i]->claimed = claim_take(inbox, key,
										sorted[i]->instance->instance.id);
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
set_duplicate(Delivery *delivery)
{
	delivery->outcome = OUTCOME_DUPLICATE;
	if (delivery->lookup.found)
		set_record(delivery, &delivery->lookup.record);
}

static void
report_duplicates(Oid inbox, Delivery **deliveries, int count)
{
	Delivery  **lost = palloc(sizeof(Delivery *) * (count + 1));

	count = look_up(inbox, deliveries, count, false, lost);
	for (int i = 0; i < count; i++)
		set_duplicate(lost[i]);
}

/*
 * Does the condition decide?  A closed instance keeps nobody waiting: its
 * sequence is over.
 */
static bool
is_sequenced(const Delivery *delivery)
{
	return !delivery->handed_over && !delivery->declaration->recording &&
		!delivery->instance->instance.closed;
}

/*
 * A message that its caller does not process is buffered whatever its
 * condition says: only a drain hands out the payload, and offers it again if
 * that fails.
 */
static Outcome
choose_outcome(const Delivery *delivery)
{
	if (is_sequenced(delivery))
		return condition_holds(delivery->declaration->condition,
							   delivery->instance->types.processed) ?
			OUTCOME_PROCESS : OUTCOME_BUFFERED;
	if (delivery->handed_over)
		return OUTCOME_BUFFERED;
	return delivery->declaration->recording ? OUTCOME_RECORDED :
		OUTCOME_PROCESS;
}

/*
 * Reads which predecessors have been processed, for all instances at once,
 * with a snapshot that is younger than the claims.  What the batch itself
 * processes is added when it is decided.
 */
static void
read_processed_types(Oid inbox, Delivery **claimed, int count,
					 DeliveryInstance **instances, int instance_count)
{
	ProcessedTypes **wanted = palloc(sizeof(ProcessedTypes *) *
									 (instance_count + 1));

	for (int i = 0; i < count; i++)
	{
		ProcessedTypes *types = &claimed[i]->instance->types;

		if (is_sequenced(claimed[i]))
			types->types = condition_predecessors(claimed[i]->declaration->condition,
												  types->types);
	}
	for (int i = 0; i < instance_count; i++)
		wanted[i] = &instances[i]->types;
	messages_processed_types(inbox, wanted, instance_count);
}

static const char *
state_to_record(const Delivery *delivery)
{
	return delivery->outcome == OUTCOME_BUFFERED ? STATE_WAITING :
		STATE_PROCESSED;
}

/*
 * Writes over the record of a message that failed.  False when it changed
 * since it was read.
 */
static bool
update_failed(Oid inbox, Delivery *delivery)
{
	Verdict		verdict = {state_to_record(delivery), NULL, DT_NOEND};
	Record	   *record = &delivery->lookup.record;
	int64		instance_id = delivery->instance->instance.id;

	if (!message_update(inbox, record->id, instance_id, &delivery->message,
						&verdict))
		return false;
	payload_drop(inbox, record->id);
	record->instance_id = instance_id;
	set_record(delivery, record);
	return true;
}

/*
 * Decides on a delivery that has the claim.  Only a failed record of the
 * message is written over; any other, which may be older than claims are,
 * makes this delivery a duplicate.
 */
static void
decide(Oid inbox, Delivery *delivery)
{
	Lookup	   *lookup = &delivery->lookup;
	ProcessedTypes *types = &delivery->instance->types;

	for (;;)
	{
		if (lookup->found && !is_recorded_as_failed(delivery))
		{
			set_duplicate(delivery);
			return;
		}
		delivery->outcome = choose_outcome(delivery);
		if (!lookup->found || update_failed(inbox, delivery))
			break;
		CHECK_FOR_INTERRUPTS();
		messages_lookup_current(inbox, &lookup, 1);
	}
	delivery->instance->written = true;
	if (delivery->outcome == OUTCOME_BUFFERED)
		delivery->instance->end.known = delivery->instance->end.waits = true;
	else
		types->processed = text_list_add(types->processed,
										 delivery->message.key.message_type);
}

static void
set_inserted(Delivery *delivery, const NewMessage *message)
{
	delivery->recorded = true;
	delivery->id = message->id;
	delivery->instance_id = message->instance_id;
}

static void
insert_new(Oid inbox, Delivery **decided, int count)
{
	NewMessage *messages = palloc(sizeof(NewMessage) * (count + 1));
	Delivery  **new = palloc(sizeof(Delivery *) * (count + 1));
	int			inserted = 0;

	for (int i = 0; i < count; i++)
	{
		if (decided[i]->recorded)
			continue;
		messages[inserted].message = &decided[i]->message;
		messages[inserted].instance_id = decided[i]->instance->instance.id;
		messages[inserted].state = state_to_record(decided[i]);
		new[inserted++] = decided[i];
	}
	messages_insert(inbox, messages, inserted);
	for (int i = 0; i < inserted; i++)
		set_inserted(new[i], &messages[i]);
}

static void
buffer_payloads(Oid inbox, Delivery **recorded, int count)
{
	PayloadOf  *payloads = palloc(sizeof(PayloadOf) * (count + 1));
	int			buffered = 0;

	for (int i = 0; i < count; i++)
	{
		if (recorded[i]->outcome != OUTCOME_BUFFERED)
			continue;
		payloads[buffered].payload = &recorded[i]->message.payload;
		payloads[buffered].instance_id = recorded[i]->instance_id;
		payloads[buffered].message_id = recorded[i]->id;
		buffered++;
	}
	payloads_buffer(inbox, payloads, buffered);
}

/*
 * Records a delivery that came alone and has the claim, in one statement.
 * False when there is a record of the message.
 *
 * A transaction that keeps one snapshot has to look with a younger one too.
 */
static bool
record_first(Oid inbox, Delivery *delivery, DeliveryInstance *instance)
{
	NewMessage	new = {&delivery->message, instance->instance.id, NULL, 0};

	if (IsolationUsesXactSnapshot())
		return false;
	read_processed_types(inbox, &delivery, 1, &instance, 1);
	delivery->outcome = choose_outcome(delivery);
	new.state = state_to_record(delivery);
	if (!message_insert_first(inbox, &new, &instance->end.waits,
							  &instance->end.complete))
		return false;

	set_inserted(delivery, &new);
	instance->written = instance->end.known = true;
	buffer_payloads(inbox, &delivery, 1);
	return true;
}

/*
 * The deliveries are in the order of their arrival.
 */
static void
record_claimed(Oid inbox, Delivery **deliveries, int count,
			   DeliveryInstance **instances, int instance_count)
{
	Delivery  **claimed = palloc(sizeof(Delivery *) * (count + 1));

	if (count == 1 && deliveries[0]->claimed &&
		record_first(inbox, deliveries[0], instances[0]))
		return;
	count = look_up(inbox, deliveries, count, true, claimed);
	read_processed_types(inbox, claimed, count, instances, instance_count);
	for (int i = 0; i < count; i++)
		decide(inbox, claimed[i]);
	insert_new(inbox, claimed, count);
	buffer_payloads(inbox, claimed, count);
}

static void
finish_instances(Oid inbox, DeliveryInstance **instances, int count)
{
	InstanceEnd **ends = palloc(sizeof(InstanceEnd *) * (count + 1));
	TimestampTz due_at = GetCurrentTransactionStartTimestamp();
	int			written = 0;

	for (int i = 0; i < count; i++)
	{
		if (instances[i]->written)
			ends[written++] = &instances[i]->end;
	}
	if (written == 1 && ends[0]->known)
		instance_leave(inbox, ends[0], due_at);
	else if (written > 0)
		instances_finish(inbox, ends, written, due_at);
}

static void
set_release_due(Delivery **deliveries, int count)
{
	for (int i = 0; i < count; i++)
		deliveries[i]->release_due =
			deliveries[i]->outcome != OUTCOME_DUPLICATE &&
			deliveries[i]->instance->end.waits;
}

/*
 * Deliveries of which a look shows that their claim was committed, and their
 * record not that they failed since, are duplicates that cost no lock and no
 * write.  Returns how many are left, at the beginning of the array.
 *
 * Of a batch, those at its beginning are looked at, up to the first that is
 * new: what a broker delivers again comes before what it has not delivered
 * yet.  The others find out when they claim.
 */
static int
drop_known_duplicates(Oid inbox, Delivery **deliveries, int count)
{
	Lookup	  **lookups = palloc(sizeof(Lookup *) * (count + 1));
	int			taken = 0;
	int			left = 0;

	while (taken < count &&
		   claim_is_taken(inbox, &deliveries[taken]->message.key))
	{
		lookups[taken] = &deliveries[taken]->lookup;
		taken++;
	}
	messages_lookup(inbox, lookups, taken);
	for (int i = 0; i < count; i++)
	{
		if (i < taken && !is_recorded_as_failed(deliveries[i]))
			set_duplicate(deliveries[i]);
		else
			deliveries[left++] = deliveries[i];
	}
	return left;
}

static int
drop_unsequenced(Delivery **deliveries, int count)
{
	int			left = 0;

	for (int i = 0; i < count; i++)
	{
		if (deliveries[i]->context_id == NULL)
			deliveries[i]->outcome = OUTCOME_UNSEQUENCED;
		else
			deliveries[left++] = deliveries[i];
	}
	return left;
}

static Delivery **
pointers_to(Delivery *deliveries, int count)
{
	Delivery  **pointers = palloc(sizeof(Delivery *) * (count + 1));

	for (int i = 0; i < count; i++)
	{
		pointers[i] = &deliveries[i];
		deliveries[i].lookup.key = &deliveries[i].message.key;
	}
	return pointers;
}

/*
 * Only opens the instances, for a caller that has something to do first.
 */
void
deliveries_open(Oid inbox, Delivery *deliveries, int count)
{
	Delivery  **sorted = pointers_to(deliveries, count);
	DeliveryInstance **instances = palloc(sizeof(DeliveryInstance *) *
										  (count + 1));

	find_declarations(inbox, sorted, count);
	(void) open_instances(inbox, sorted, count, instances);
}

void
deliveries_receive(Oid inbox, Delivery *deliveries, int count)
{
	Delivery  **sorted = pointers_to(deliveries, count);
	DeliveryInstance **instances = palloc(sizeof(DeliveryInstance *) *
										  (count + 1));
	int			instance_count;

	find_declarations(inbox, sorted, count);
	sort_deliveries(sorted, count, by_arrival);
	count = drop_unsequenced(sorted, count);
	count = drop_known_duplicates(inbox, sorted, count);
	instance_count = open_instances(inbox, sorted, count, instances);
	take_claims(inbox, sorted, count);
	take_over_claims(inbox, sorted, count);

	sort_deliveries(sorted, count, by_arrival);
	record_claimed(inbox, sorted, count, instances, instance_count);
	report_duplicates(inbox, sorted, count);
	finish_instances(inbox, instances, instance_count);
	set_release_due(sorted, count);
}
