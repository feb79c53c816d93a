/*-------------------------------------------------------------------------
 *
 * document.h
 *	  Reading a jsonb document whose faults are reported with their path.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_DOCUMENT_H
#define SEQINBOX_DOCUMENT_H

#include "utils/jsonb.h"

/*
 * A place in a document: a member of its parent or, where key is null, an
 * element.  Written out as a path only when there is a fault.
 */
typedef struct JsonPlace
{
	const struct JsonPlace *parent;
	const char *key;
	int			index;
} JsonPlace;

#define JSON_MEMBER(parent, key) ((JsonPlace) {&(parent), key, 0})
#define JSON_ELEMENT(parent, index) ((JsonPlace) {&(parent), NULL, index})

/* refuses the document; the detail is a format, with what belongs in it */
#define document_fault(place, ...) \
	ereport(ERROR, \
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE), \
			 errmsg("invalid declaration at %s", document_path(place)), \
			 errdetail(__VA_ARGS__)))

extern char *document_path(const JsonPlace *place);

extern JsonbContainer *document_object(const JsonPlace *place,
									   const JsonbValue *value);
extern JsonbContainer *document_array(const JsonPlace *place,
									  const JsonbValue *value);
extern text *document_name(const JsonPlace *place, const JsonbValue *value);
extern JsonbValue *document_get(JsonbContainer *object, const char *key);
extern void document_check_keys(const JsonPlace *place, JsonbContainer *object,
								const char *const *known);

#endif							/* SEQINBOX_DOCUMENT_H */
