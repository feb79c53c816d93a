/*-------------------------------------------------------------------------
 *
 * texts.h
 *	  Comparing texts, and lists of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_TEXTS_H
#define SEQINBOX_TEXTS_H

#include "nodes/pg_list.h"
#include "utils/array.h"

extern int	text_compare(const text *a, const text *b);
extern bool text_equals(const text *a, const text *b);
extern bool text_list_member(const List *list, const text *value);
extern List *text_list_add(List *list, text *value);
extern ArrayType *text_list_array(const List *list);

#endif							/* SEQINBOX_TEXTS_H */
