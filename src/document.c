/*-------------------------------------------------------------------------
 *
 * document.c
 *	  Reads a jsonb document and reports faults with their path.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "args.h"
#include "compat.h"
#include "document.h"

static void
append_place(StringInfo path, const JsonPlace *place)
{
	check_stack_depth();
	if (place->parent == NULL)
	{
		appendStringInfoString(path, place->key);
		return;
	}
	append_place(path, place->parent);
	if (place->key != NULL)
		appendStringInfo(path, ".%s", place->key);
	else
		appendStringInfo(path, "[%d]", place->index);
}

char *
document_path(const JsonPlace *place)
{
	StringInfoData path;

	initStringInfo(&path);
	append_place(&path, place);
	return path.data;
}

JsonbContainer *
document_object(const JsonPlace *place, const JsonbValue *value)
{
	if (value == NULL || value->type != jbvBinary ||
		!JsonContainerIsObject(value->val.binary.data))
		document_fault(place, "An object is needed.");
	return value->val.binary.data;
}

JsonbContainer *
document_array(const JsonPlace *place, const JsonbValue *value)
{
	if (value == NULL || value->type != jbvBinary ||
		!JsonContainerIsArray(value->val.binary.data) ||
		JsonContainerIsScalar(value->val.binary.data))
		document_fault(place, "An array is needed.");
	return value->val.binary.data;
}

/*
 * A string that names something.
 */
text *
document_name(const JsonPlace *place, const JsonbValue *value)
{
	if (value == NULL || value->type != jbvString ||
		value->val.string.len == 0)
		document_fault(place, "A string that is not empty is needed.");
	if (value->val.string.len > MAX_TYPE_LENGTH)
		document_fault(place, "The string has %d bytes; the limit is %d bytes.",
					   value->val.string.len, MAX_TYPE_LENGTH);
	return cstring_to_text_with_len(value->val.string.val,
									value->val.string.len);
}

/*
 * A member of an object, or NULL.
 */
JsonbValue *
document_get(JsonbContainer *object, const char *key)
{
	JsonbValue	name;

	name.type = jbvString;
	name.val.string.val = unconstify(char *, key);
	name.val.string.len = strlen(key);
	return findJsonbValueFromContainer(object, JB_FOBJECT, &name);
}

static bool
is_known(const JsonbValue *key, const char *const *known)
{
	for (; *known != NULL; known++)
	{
		if (strlen(*known) == (size_t) key->val.string.len &&
			memcmp(*known, key->val.string.val, key->val.string.len) == 0)
			return true;
	}
	return false;
}

/*
 * Only known keys may be in an object; the list of them ends with NULL.
 */
void
document_check_keys(const JsonPlace *place, JsonbContainer *object,
					const char *const *known)
{
	JsonbIterator *iterator = JsonbIteratorInit(object);
	JsonbIteratorToken token;
	JsonbValue	value;

	while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY && !is_known(&value, known))
		{
			char	   *key = pnstrdup(value.val.string.val,
									   value.val.string.len);
			JsonPlace	here = {place, key, 0};

			document_fault(&here, "The key is unknown.");
		}
	}
}
