/*-------------------------------------------------------------------------
 *
 * arrays.h
 *	  Building arrays for the parameters of statements.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_ARRAYS_H
#define SEQINBOX_ARRAYS_H

#include "utils/array.h"

extern ArrayType *array_of(Oid element_type, Datum *elements, bool *nulls,
						   int count);

#endif							/* SEQINBOX_ARRAYS_H */
