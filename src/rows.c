/*-------------------------------------------------------------------------
 *
 * rows.c
 *	  Parameters of statements that take several rows at once.
 *
 * Each parameter of such a statement is an array, with an element for each
 * row.  The statement reads them WITH ORDINALITY, so it can keep the order of
 * the rows and tell which of them it speaks of.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/lsyscache.h"

#include "arrays.h"
#include "rows.h"
#include "texts.h"

void
rows_begin(Rows *rows, int columns, int capacity)
{
	rows->columns = columns;
	rows->capacity = capacity;
	rows->count = 0;
	rows->values = palloc0(sizeof(Datum) * columns * capacity);
	rows->nulls = palloc0(sizeof(bool) * columns * capacity);
}

/*
 * Begins a row, in which all is null until it is set.
 */
void
rows_add(Rows *rows)
{
	Assert(rows->count < rows->capacity);
	for (int column = 0; column < rows->columns; column++)
		rows->nulls[column * rows->capacity + rows->count] = true;
	rows->count++;
}

void
rows_set(Rows *rows, int column, Datum value)
{
	int			i = column * rows->capacity + rows->count - 1;

	rows->values[i] = value;
	rows->nulls[i] = false;
}

/*
 * A null pointer is a null.
 */
void
rows_set_pointer(Rows *rows, int column, const void *pointer)
{
	if (pointer != NULL)
		rows_set(rows, column, PointerGetDatum(pointer));
}

/*
 * Runs a statement whose parameters are the columns.
 */
uint64
rows_run(Oid inbox, const Statement *statement, const Rows *rows)
{
	Datum		values[STATEMENT_MAX_ARGS];

	Assert(statement->nargs == rows->columns);
	for (int column = 0; column < rows->columns; column++)
	{
		Oid			type = get_element_type(statement->argtypes[column]);
		size_t		first = (size_t) column * rows->capacity;

		values[column] = PointerGetDatum(array_of(type, rows->values + first,
												  rows->nulls + first,
												  rows->count));
	}
	return statement_run(inbox, statement, values, NULL);
}

/*
 * Which of the rows, counted from 0, a row of the result speaks of: a column
 * of it has the ordinality.
 */
int
rows_place(int row, int column)
{
	Datum		place;

	if (!statement_get_from(row, column, INT8OID, &place))
		elog(ERROR, "result row has no place");
	return (int) DatumGetInt64(place) - 1;
}

/*
 * Does a row of the result have this name, of two texts, in the columns from
 * this one on?
 */
bool
rows_name_is(int row, int column, const text *first, const text *second)
{
	Datum		a;
	Datum		b;

	return statement_get_from(row, column, TEXTOID, &a) &&
		statement_get_from(row, column + 1, TEXTOID, &b) &&
		text_equals(DatumGetTextPP(a), first) &&
		text_equals(DatumGetTextPP(b), second);
}
