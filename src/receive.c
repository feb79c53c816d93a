/*-------------------------------------------------------------------------
 *
 * receive.c
 *	  The SQL-callable functions that take in deliveries.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "args.h"
#include "arrays.h"
#include "claim.h"
#include "compat.h"
#include "dead_letter.h"
#include "delivery.h"
#include "idle.h"
#include "inbox.h"

static const char *
outcome_name(Outcome outcome)
{
	switch (outcome)
	{
		case OUTCOME_PROCESS:
			return "PROCESS";
		case OUTCOME_BUFFERED:
			return "BUFFERED";
		case OUTCOME_DUPLICATE:
			return "DUPLICATE";
		case OUTCOME_RECORDED:
			return "RECORDED";
		case OUTCOME_UNSEQUENCED:
			return "UNSEQUENCED";
	}
	elog(ERROR, "unknown outcome %d", (int) outcome);
	return NULL;				/* keep compiler quiet */
}

static bool
has_to_be_processed(Outcome outcome)
{
	return outcome == OUTCOME_PROCESS || outcome == OUTCOME_RECORDED ||
		outcome == OUTCOME_UNSEQUENCED;
}

#define RESULT_COLUMNS 6

static void
fill_result(const Delivery *delivery, Datum *values, bool *nulls)
{
	values[0] = BoolGetDatum(has_to_be_processed(delivery->outcome));
	values[1] = CStringGetTextDatum(outcome_name(delivery->outcome));
	values[2] = Int64GetDatum(delivery->id);
	values[3] = Int64GetDatum(delivery->instance_id);
	values[4] = Int32GetDatum(delivery->attempts);
	values[5] = BoolGetDatum(delivery->release_due);
	memset(nulls, false, RESULT_COLUMNS * sizeof(bool));
	nulls[2] = nulls[3] = nulls[4] = !delivery->recorded;
}

PG_FUNCTION_INFO_V1(seqinbox_receive);
Datum
seqinbox_receive(PG_FUNCTION_ARGS)
{
	Delivery	delivery;
	Oid			inbox;
	TupleDesc	tupdesc;
	Datum		values[RESULT_COLUMNS];
	bool		nulls[RESULT_COLUMNS];

	memset(&delivery, 0, sizeof(delivery));
	message_from_args(fcinfo, 3, &delivery.message);
	if (!PG_ARGISNULL(2))
		delivery.context_id = arg_name(fcinfo, 2, "context_id",
									   MAX_ID_LENGTH);
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	inbox = inbox_in_use();
	PreventCommandIfReadOnly("seqinbox_receive()");
	idle_limit();

	SPI_connect();
	deliveries_receive(inbox, &delivery, 1);
	SPI_finish();

	fill_result(&delivery, values, nulls);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}

/*
 * A dead letter comes in again, as a delivery does, but for a consumer to be
 * handed out: whoever calls this has no handler.  Its claim would make it a
 * duplicate, so that goes first; the instance before it, in the order in
 * which everybody locks them.
 */
PG_FUNCTION_INFO_V1(seqinbox_requeue);
Datum
seqinbox_requeue(PG_FUNCTION_ARGS)
{
	int64		id = arg_id(fcinfo, 0, "dead_letter_id");
	Oid			inbox;
	DeadLetter	letter;
	Delivery	delivery;
	TupleDesc	tupdesc;
	Datum		values[RESULT_COLUMNS];
	bool		nulls[RESULT_COLUMNS];

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	inbox = inbox_in_use();
	idle_limit();

	SPI_connect();
	dead_letter_exhume(inbox, id, &letter);
	memset(&delivery, 0, sizeof(delivery));
	delivery.message = letter.message;
	delivery.context_id = letter.context_id;
	delivery.handed_over = true;
	deliveries_open(inbox, &delivery, 1);
	(void) claim_delete(inbox, &delivery.message.key);
	deliveries_receive(inbox, &delivery, 1);
	SPI_finish();

	fill_result(&delivery, values, nulls);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}

/* of so many deliveries, all that is kept in memory still fits into its place */
#define MAX_BATCH 1000000

/* the arguments of seqinbox_receive_batch() */
enum
{
	BATCH_TYPES,
	BATCH_IDS,
	BATCH_CONTEXTS,
	BATCH_VALUES,
	BATCH_KEYS,
	BATCH_HEADER_COUNTS,
	BATCH_HEADER_NAMES,
	BATCH_HEADER_VALUES,
	BATCH_TOPICS,
	BATCH_CLUSTERS,
	BATCH_UUIDS,
	BATCH_TRACEPARENTS,
	BATCH_ARGS
};

typedef struct BatchArg
{
	const char *name;
	Oid			element_type;
	bool		required;
	bool		per_header;		/* an element for each header, not message */

	/* null pointers when the argument is NULL */
	Datum	   *elements;
	bool	   *nulls;
	int			count;
} BatchArg;

static const BatchArg batch_args[BATCH_ARGS] = {
	{"message_types", TEXTOID, true, false, NULL, NULL, 0},
	{"idempotence_ids", TEXTOID, true, false, NULL, NULL, 0},
	{"context_ids", TEXTOID, true, false, NULL, NULL, 0},
	{"message_values", BYTEAOID, true, false, NULL, NULL, 0},
	{"message_keys", BYTEAOID, false, false, NULL, NULL, 0},
	{"header_counts", INT4OID, false, false, NULL, NULL, 0},
	{"header_names", TEXTOID, false, true, NULL, NULL, 0},
	{"header_values", BYTEAOID, false, true, NULL, NULL, 0},
	{"topics", TEXTOID, false, false, NULL, NULL, 0},
	{"cluster_names", TEXTOID, false, false, NULL, NULL, 0},
	{"message_uuids", UUIDOID, false, false, NULL, NULL, 0},
	{"traceparents", TEXTOID, false, false, NULL, NULL, 0}
};

static void
read_batch_arg(FunctionCallInfo fcinfo, int n, BatchArg *arg)
{
	ArrayType  *array = ARG_ARRAY(n);
	int16		length;
	bool		by_value;
	char		align;

	if (array == NULL)
	{
		if (arg->required)
			null_argument(arg->name);
		return;
	}
	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must have one dimension",
						arg->name)));
	get_typlenbyvalalign(arg->element_type, &length, &by_value, &align);
	deconstruct_array(array, arg->element_type, length, by_value, align,
					  &arg->elements, &arg->nulls, &arg->count);
}

static void
check_length(const BatchArg *arg, int count)
{
	if (arg->elements != NULL && arg->count != count)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" has the wrong length", arg->name),
				 errdetail("It has %d elements; %d are needed.",
						   arg->count, count)));
}

/*
 * An element as a pointer, NULL for none.
 */
static void *
element(const BatchArg *args, int arg, int i)
{
	if (args[arg].elements == NULL || args[arg].nulls[i])
		return NULL;
	return DatumGetPointer(args[arg].elements[i]);
}

/*
 * How many headers there are in all.
 */
static int
count_headers(const BatchArg *args)
{
	const BatchArg *counts = &args[BATCH_HEADER_COUNTS];
	int64		total = 0;

	for (int i = 0; i < counts->count; i++)
	{
		int32		count = 0;

		if (!counts->nulls[i])
			count = DatumGetInt32(counts->elements[i]);
		if (count < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("argument \"%s\" must not contain negative numbers",
							counts->name)));
		total += count;
	}
	return (int) Min(total, INT_MAX);
}

/*
 * The part of a header array that belongs to one message.
 */
static ArrayType *
slice(const BatchArg *arg, int first, int count)
{
	if (count == 0)
		return NULL;
	return array_of(arg->element_type, arg->elements + first,
					arg->nulls + first, count);
}

static void
read_delivery(const BatchArg *args, int i, int *headers, Delivery *delivery)
{
	Message    *message = &delivery->message;
	const BatchArg *counts = &args[BATCH_HEADER_COUNTS];
	int			count = 0;

	message->key.message_type = element(args, BATCH_TYPES, i);
	check_name(message->key.message_type, "message_types", MAX_TYPE_LENGTH);
	message->key.idempotence_id = element(args, BATCH_IDS, i);
	check_name(message->key.idempotence_id, "idempotence_ids", MAX_ID_LENGTH);
	delivery->context_id = element(args, BATCH_CONTEXTS, i);
	if (delivery->context_id != NULL)
		check_name(delivery->context_id, "context_ids", MAX_ID_LENGTH);

	message->payload.value = element(args, BATCH_VALUES, i);
	message->payload.key = element(args, BATCH_KEYS, i);
	if (counts->elements != NULL && !counts->nulls[i])
		count = DatumGetInt32(counts->elements[i]);
	message->payload.header_names = slice(&args[BATCH_HEADER_NAMES],
										  *headers, count);
	message->payload.header_values = slice(&args[BATCH_HEADER_VALUES],
										   *headers, count);
	payload_count_headers(&message->payload);
	*headers += count;

	message->topic = element(args, BATCH_TOPICS, i);
	message->cluster_name = element(args, BATCH_CLUSTERS, i);
	message->uuid = element(args, BATCH_UUIDS, i);
	traceparent_parse(element(args, BATCH_TRACEPARENTS, i), &message->trace);
	message_check_size(message);
	delivery->ordinal = i + 1;
}

static Delivery *
read_batch(FunctionCallInfo fcinfo, int *count)
{
	BatchArg	args[BATCH_ARGS];
	Delivery   *deliveries;
	int			total;
	int			headers = 0;

	memcpy(args, batch_args, sizeof(args));
	for (int n = 0; n < BATCH_ARGS; n++)
		read_batch_arg(fcinfo, n, &args[n]);
	*count = args[BATCH_TYPES].count;
	if (*count > MAX_BATCH)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many deliveries in one batch"),
				 errdetail("There are %d deliveries; the limit is %d.",
						   *count, MAX_BATCH)));
	total = count_headers(args);
	for (int n = 0; n < BATCH_ARGS; n++)
		check_length(&args[n], args[n].per_header ? total : *count);
	for (int n = 0; n < BATCH_ARGS; n++)
	{
		if (args[n].per_header && total > 0 && args[n].elements == NULL)
			null_argument(args[n].name);
	}

	deliveries = palloc0(sizeof(Delivery) * (*count + 1));
	for (int i = 0; i < *count; i++)
		read_delivery(args, i, &headers, &deliveries[i]);
	return deliveries;
}

PG_FUNCTION_INFO_V1(seqinbox_receive_batch);
Datum
seqinbox_receive_batch(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	int			count;
	Delivery   *deliveries = read_batch(fcinfo, &count);
	Oid			inbox = inbox_in_use();

	InitMaterializedSRF_compat(fcinfo);
	PreventCommandIfReadOnly("seqinbox_receive_batch()");
	idle_limit();

	SPI_connect();
	deliveries_receive(inbox, deliveries, count);
	SPI_finish();

	for (int i = 0; i < count; i++)
	{
		Datum		values[RESULT_COLUMNS + 1];
		bool		nulls[RESULT_COLUMNS + 1];

		values[0] = Int32GetDatum(deliveries[i].ordinal);
		nulls[0] = false;
		fill_result(&deliveries[i], values + 1, nulls + 1);
		tuplestore_putvalues(result->setResult, result->setDesc,
							 values, nulls);
	}
	return (Datum) 0;
}
