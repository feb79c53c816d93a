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

#include "utils/array.h"
#include "utils/lsyscache.h"

#include "rows.h"

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

static Datum
column_array(const Rows *rows, int column, Oid array_type)
{
	Oid			type = get_element_type(array_type);
	size_t		first = (size_t) column * rows->capacity;
	int			dims[1] = {rows->count};
	int			lower[1] = {1};
	int16		length;
	bool		by_value;
	char		align;

	get_typlenbyvalalign(type, &length, &by_value, &align);
	return PointerGetDatum(construct_md_array(rows->values + first,
											  rows->nulls + first,
											  1, dims, lower, type,
											  length, by_value, align));
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
		values[column] = column_array(rows, column,
									  statement->argtypes[column]);
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

	if (!statement_get_from(row, column, &place))
		elog(ERROR, "result row has no place");
	return (int) DatumGetInt64(place) - 1;
}
