/*-------------------------------------------------------------------------
 *
 * traceparent.h
 *	  The trace context of a message, in the form of the W3C recommendation.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_TRACEPARENT_H
#define SEQINBOX_TRACEPARENT_H

typedef struct TraceContext
{
	bool		present;
	uint64		trace_id_high;
	uint64		trace_id;
	uint64		span_id;
	bool		sampled;
} TraceContext;

#define TRACE_ID_HEX_LENGTH 32

extern void traceparent_parse(const text *traceparent, TraceContext *trace);
extern text *traceparent_build(const TraceContext *trace);
extern text *trace_id_string(const TraceContext *trace);

#endif							/* SEQINBOX_TRACEPARENT_H */
