/*-------------------------------------------------------------------------
 *
 * rows.h
 *	  Parameters of statements that take several rows at once.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_ROWS_H
#define SEQINBOX_ROWS_H

#include "inbox.h"

typedef struct Rows
{
	int			columns;
	int			capacity;
	int			count;
	Datum	   *values;			/* column by column */
	bool	   *nulls;
} Rows;

extern void rows_begin(Rows *rows, int columns, int capacity);
extern void rows_add(Rows *rows);
extern void rows_set(Rows *rows, int column, Datum value);
extern void rows_set_pointer(Rows *rows, int column, const void *pointer);
extern uint64 rows_run(Oid inbox, const Statement *statement,
					   const Rows *rows);
extern int	rows_place(int row, int column);
extern bool rows_name_is(int row, int column, const text *first,
						 const text *second);

#endif							/* SEQINBOX_ROWS_H */
