/*-------------------------------------------------------------------------
 *
 * window.c
 *	  The instances that claims without sequencing hang on.
 *
 * A claim must belong to a sequence instance, since that is how it is removed
 * in the end.  Claims without sequencing belong to instances of a reserved
 * sequence, one set of them per day (UTC).  They are CLOSED from the start,
 * and kept until the day's last claim is as old as the retention asks.  Each
 * set has several instances, over which the backends spread, so that the
 * foreign key's lock is no hot spot.
 *
 * The context ID names the day, the retention in seconds and the place in
 * the set: 2026-01-31/604800s/07.  Sessions with another retention thus use
 * other instances.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/timestamp.h"

#include "arrays.h"
#include "compat.h"
#include "instance.h"
#include "sql.h"
#include "window.h"

#define WINDOW_PLACES 16
#define WINDOWS_AHEAD 3			/* today and the two days that follow */

int			idempotence_retention;

static const Statement find = {
	"SELECT i.id FROM $inbox.sequence_instance i"
	" WHERE i.name" EQ "'" WINDOW_SEQUENCE "' AND i.context_id" EQ "$1",
	1, {TEXTOID}
};

/* what is there is left out before its ID would be drawn for nothing */
static const Statement make = {
	"INSERT INTO $inbox.sequence_instance"
	" (name, context_id, state, created_at, closed_at, retain_until,"
	" created_in_recording_mode)"
	" SELECT '" WINDOW_SEQUENCE "', w.context_id, '" INSTANCE_CLOSED "',"
	" $3, $3, w.retain_until, false"
	" FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2))"
	" AS w (context_id, retain_until)"
	" WHERE NOT EXISTS (SELECT 1 FROM $inbox.sequence_instance i"
	" WHERE i.name" EQ "'" WINDOW_SEQUENCE "'"
	" AND i.context_id" EQ "w.context_id)"
	" ON CONFLICT (name, context_id) DO NOTHING",
	3, {TEXTARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZOID}
};

bool
is_window_sequence(const text *sequence_name)
{
	return VARSIZE_ANY_EXHDR(sequence_name) == strlen(WINDOW_SEQUENCE) &&
		memcmp(VARDATA_ANY(sequence_name), WINDOW_SEQUENCE,
			   strlen(WINDOW_SEQUENCE)) == 0;
}

static int64
day_of(TimestampTz moment)
{
	int64		day = moment / USECS_PER_DAY;

	return moment % USECS_PER_DAY < 0 ? day - 1 : day;
}

static char *
window_prefix(int64 day)
{
	int			year;
	int			month;
	int			mday;

	j2date((int) day + POSTGRES_EPOCH_JDATE, &year, &month, &mday);
	return psprintf("%04d-%02d-%02d/%ds", year, month, mday,
					idempotence_retention);
}

static text *
place_context(int64 day, int place)
{
	return cstring_to_text(psprintf("%s/%02d", window_prefix(day), place));
}

static TimestampTz
retain_until(int64 day)
{
	return (day + 1) * USECS_PER_DAY +
		(int64) idempotence_retention * USECS_PER_SEC;
}

/*
 * The context that this backend uses now.  The clock is read on purpose: a
 * transaction may have begun on the day before.
 */
text *
window_context(void)
{
	return place_context(day_of(GetCurrentTimestamp()),
						 MyProcPid % WINDOW_PLACES);
}

int64
window_find(Oid inbox, const text *context_id)
{
	Datum		values[1] = {PointerGetDatum(context_id)};
	Datum		id;

	if (statement_run(inbox, &find, values, NULL) == 0 ||
		!statement_get(1, INT8OID, &id))
		return 0;
	return DatumGetInt64(id);
}

static void
make_windows(Oid inbox, Datum *contexts, Datum *retentions, int count)
{
	Datum		values[3];

	values[0] = PointerGetDatum(array_of(TEXTOID, contexts, NULL, count));
	values[1] = PointerGetDatum(array_of(TIMESTAMPTZOID, retentions, NULL,
										 count));
	values[2] = TimestampTzGetDatum(GetCurrentTimestamp());
	(void) statement_run(inbox, &make, values, NULL);
}

/*
 * A window of this backend's own, for when nobody made the common ones ahead.
 * Making a common one here would let others wait for this transaction.
 */
int64
window_private(Oid inbox)
{
	int64		day = day_of(GetCurrentTimestamp());
	text	   *context = cstring_to_text(psprintf("%s/pid%d",
												   window_prefix(day),
												   MyProcPid));
	int64		id = window_find(inbox, context);

	if (id == 0)
	{
		Datum		contexts[1] = {PointerGetDatum(context)};
		Datum		retentions[1] = {TimestampTzGetDatum(retain_until(day))};

		make_windows(inbox, contexts, retentions, 1);
		id = window_find(inbox, context);
	}
	if (id == 0)
		elog(ERROR, "could not make an instance for claims without sequencing");
	return id;
}

void
windows_make_ahead(Oid inbox)
{
	int64		today = day_of(GetCurrentTimestamp());
	Datum		contexts[WINDOWS_AHEAD * WINDOW_PLACES];
	Datum		retentions[WINDOWS_AHEAD * WINDOW_PLACES];
	int			count = 0;

	for (int ahead = 0; ahead < WINDOWS_AHEAD; ahead++)
	{
		for (int place = 0; place < WINDOW_PLACES; place++)
		{
			int64		day = today + ahead;

			contexts[count] = PointerGetDatum(place_context(day, place));
			retentions[count] = TimestampTzGetDatum(retain_until(day));
			count++;
		}
	}
	make_windows(inbox, contexts, retentions, count);
}
