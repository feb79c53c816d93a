/*-------------------------------------------------------------------------
 *
 * layout.h
 *	  What an inbox consists of.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_LAYOUT_H
#define SEQINBOX_LAYOUT_H

#define MAX_INDEX_KEYS 4

/* where the IDs of instances come from */
#define INSTANCE_TABLE "sequence_instance"
#define INSTANCE_SEQUENCE "sequence_instance_sequence"

typedef struct ColumnLayout
{
	const char *name;
	const char *type;
	const char *constraint;		/* what follows the type, or NULL */
	const char *default_value;	/* or NULL */
	const char *sequence;		/* whose next value is the default, or NULL */
} ColumnLayout;

typedef struct IndexLayout
{
	const char *name;
	const char *keys[MAX_INDEX_KEYS];
	bool		unique;
	const char *predicate;		/* or NULL */

	/*
	 * Leading keys of a full index that serves as well, or none.  A full
	 * index on the keys themselves does not replace a partial one: what makes
	 * that worth having is how few rows it has.
	 */
	const char *equivalent[MAX_INDEX_KEYS];
} IndexLayout;

typedef struct TableLayout
{
	const char *name;
	IndexLayout primary_key;
	const ColumnLayout *columns;
	int			column_count;
	const IndexLayout *indexes;
	int			index_count;
} TableLayout;

/* in an order in which they can be created */
extern const TableLayout inbox_layout[];
extern const int inbox_layout_count;

#endif							/* SEQINBOX_LAYOUT_H */
