/*-------------------------------------------------------------------------
 *
 * sql.h
 *	  Operators for SQL text that runs under a caller's search_path.
 *
 * An unqualified operator would be looked up along that path and could be
 * somebody else's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_SQL_H
#define SEQINBOX_SQL_H

#define EQ		" OPERATOR(pg_catalog.=) "
#define NE		" OPERATOR(pg_catalog.<>) "
#define LT		" OPERATOR(pg_catalog.<) "
#define LE		" OPERATOR(pg_catalog.<=) "
#define GT		" OPERATOR(pg_catalog.>) "
#define PLUS	" OPERATOR(pg_catalog.+) "

#endif							/* SEQINBOX_SQL_H */
