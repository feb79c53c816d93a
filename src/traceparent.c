/*-------------------------------------------------------------------------
 *
 * traceparent.c
 *	  Parses and rebuilds the W3C traceparent of a message.
 *
 * version "-" trace-id "-" parent-id "-" trace-flags, all in lower-case
 * hexadecimal digits.  A traceparent that is not well-formed counts as
 * absent: tracing must not stop a message.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "compat.h"
#include "traceparent.h"

#define VERSION_AT		0
#define TRACE_ID_AT		3
#define SPAN_ID_AT		36
#define FLAGS_AT		53
#define VERSION_00_LENGTH 55

#define VERSION_FORBIDDEN 0xff
#define FLAG_SAMPLED	0x01

static bool
parse_hex(const char *digits, int count, uint64 *value)
{
	*value = 0;
	for (int i = 0; i < count; i++)
	{
		char		c = digits[i];

		if (c >= '0' && c <= '9')
			*value = (*value << 4) | (uint64) (c - '0');
		else if (c >= 'a' && c <= 'f')
			*value = (*value << 4) | (uint64) (c - 'a' + 10);
		else
			return false;
	}
	return true;
}

/*
 * A higher version may carry more behind the four fields, after a dash; what
 * is known of it is read as version 00, as the recommendation asks.
 */
static bool
length_fits(const char *s, int length, uint64 version)
{
	if (length == VERSION_00_LENGTH)
		return true;
	return version > 0 && length > VERSION_00_LENGTH &&
		s[VERSION_00_LENGTH] == '-';
}

void
traceparent_parse(const text *traceparent, TraceContext *trace)
{
	const char *s;
	int			length;
	uint64		version;
	uint64		flags;

	memset(trace, 0, sizeof(*trace));
	if (traceparent == NULL)
		return;

	s = VARDATA_ANY(traceparent);
	length = VARSIZE_ANY_EXHDR(traceparent);
	if (length < VERSION_00_LENGTH)
		return;
	if (s[TRACE_ID_AT - 1] != '-' || s[SPAN_ID_AT - 1] != '-' ||
		s[FLAGS_AT - 1] != '-')
		return;
	if (!parse_hex(s + VERSION_AT, 2, &version) ||
		!parse_hex(s + TRACE_ID_AT, 16, &trace->trace_id_high) ||
		!parse_hex(s + TRACE_ID_AT + 16, 16, &trace->trace_id) ||
		!parse_hex(s + SPAN_ID_AT, 16, &trace->span_id) ||
		!parse_hex(s + FLAGS_AT, 2, &flags))
		return;
	if (version == VERSION_FORBIDDEN || !length_fits(s, length, version))
		return;
	if ((trace->trace_id_high == 0 && trace->trace_id == 0) ||
		trace->span_id == 0)
		return;

	trace->sampled = (flags & FLAG_SAMPLED) != 0;
	trace->present = true;
}

text *
traceparent_build(const TraceContext *trace)
{
	if (!trace->present)
		return NULL;
	return cstring_to_text(psprintf("00-%016llx%016llx-%016llx-%02x",
									(unsigned long long) trace->trace_id_high,
									(unsigned long long) trace->trace_id,
									(unsigned long long) trace->span_id,
									trace->sampled ? FLAG_SAMPLED : 0));
}

text *
trace_id_string(const TraceContext *trace)
{
	return cstring_to_text(psprintf("%016llx%016llx",
									(unsigned long long) trace->trace_id_high,
									(unsigned long long) trace->trace_id));
}
