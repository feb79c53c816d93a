/*-------------------------------------------------------------------------
 *
 * descriptor.h
 *	  The document that declares sequences.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_DESCRIPTOR_H
#define SEQINBOX_DESCRIPTOR_H

#include "nodes/pg_list.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "condition.h"

typedef struct TypeDescriptor
{
	text	   *message_type;	/* qualified */
	text	   *type;			/* without the sub-type */
	text	   *sub_type;		/* or NULL */
	Jsonb	   *stored_condition;	/* or NULL */
	Condition  *condition;		/* the same, parsed */
	char	   *path;			/* where it stands in the document */
	int			visit;			/* for the search of cycles */
} TypeDescriptor;

typedef struct SequenceDescriptor
{
	text	   *name;
	Interval   *retention_period;
	TimestampTz sequencing_start;	/* or DT_NOBEGIN */
	List	   *types;
} SequenceDescriptor;

extern List *descriptor_parse(Jsonb *document);
extern JsonPlace descriptor_place(const TypeDescriptor *type);

#endif							/* SEQINBOX_DESCRIPTOR_H */
