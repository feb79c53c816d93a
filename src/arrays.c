/*-------------------------------------------------------------------------
 *
 * arrays.c
 *	  Builds arrays for the parameters of statements.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/lsyscache.h"

#include "arrays.h"

/*
 * An array of one dimension.  Without nulls, that argument may be NULL.
 */
ArrayType *
array_of(Oid element_type, Datum *elements, bool *nulls, int count)
{
	int			dims[1] = {count};
	int			lower[1] = {1};
	int16		length;
	bool		by_value;
	char		align;

	get_typlenbyvalalign(element_type, &length, &by_value, &align);
	return construct_md_array(elements, nulls, 1, dims, lower, element_type,
							  length, by_value, align);
}
