/*-------------------------------------------------------------------------
 *
 * inbox.h
 *	  Which inbox a call uses, and the statements saved for it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_INBOX_H
#define SEQINBOX_INBOX_H

#include "executor/spi.h"

#define CLAIM_TABLE "sequential_inbox_idempotence"
#define CLAIM_KEY CLAIM_TABLE "_pkey"
#define TYPE_DECLARATION_TABLE "message_type_declaration"

#define STATEMENT_MAX_ARGS 24

/*
 * One SQL statement of this extension.  In its text, $inbox stands for the
 * schema of the inbox.  Statements are static variables: their address is
 * part of the key under which the plan is saved.
 */
typedef struct Statement
{
	const char *text;
	int			nargs;
	Oid			argtypes[STATEMENT_MAX_ARGS];
} Statement;

extern void inbox_init(void);
extern Oid	inbox_in_use(void);
extern char *inbox_sql(const char *quoted_schema, const char *text);

extern uint64 statement_run(Oid inbox, const Statement *statement,
							Datum *values, const char *nulls);
extern void statements_read_latest(bool latest);
extern void statement_check_types(TupleDesc wanted);
extern bool statement_get(int column, Oid type, Datum *value);
extern text *statement_get_text(int column);
extern int64 statement_get_id(int row);
extern bool statement_get_from(int row, int column, Oid type, Datum *value);

#endif							/* SEQINBOX_INBOX_H */
