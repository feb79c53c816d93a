/*-------------------------------------------------------------------------
 *
 * texts.c
 *	  Compares texts, byte by byte as COLLATE "C" does, and keeps lists of
 *	  them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"

#include "arrays.h"
#include "compat.h"
#include "texts.h"

int
text_compare(const text *a, const text *b)
{
	int			length_a = VARSIZE_ANY_EXHDR(a);
	int			length_b = VARSIZE_ANY_EXHDR(b);
	int			order = memcmp(VARDATA_ANY(a), VARDATA_ANY(b),
							   Min(length_a, length_b));

	if (order != 0)
		return order;
	return (length_a > length_b) - (length_a < length_b);
}

bool
text_equals(const text *a, const text *b)
{
	return text_compare(a, b) == 0;
}

bool
text_list_member(const List *list, const text *value)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		if (text_equals(lfirst(lc), value))
			return true;
	}
	return false;
}

/*
 * Adds a text unless it is in the list.
 */
List *
text_list_add(List *list, text *value)
{
	return text_list_member(list, value) ? list : lappend(list, value);
}

ArrayType *
text_list_array(const List *list)
{
	Datum	   *elements = palloc(sizeof(Datum) * (list_length(list) + 1));
	int			count = 0;
	ListCell   *lc;

	foreach(lc, list)
		elements[count++] = PointerGetDatum(lfirst(lc));
	return array_of(TEXTOID, elements, NULL, count);
}
