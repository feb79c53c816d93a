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
#define GE		" OPERATOR(pg_catalog.>=) "
#define PLUS	" OPERATOR(pg_catalog.+) "
#define MINUS	" OPERATOR(pg_catalog.-) "
#define TIMES	" OPERATOR(pg_catalog.*) "

/*
 * Text columns of an adopted inbox may have any collation; those of the
 * declarations are always COLLATE "C".  A comparison between the two names
 * one of these: C for a look-up in the declarations, and for one elsewhere
 * the default, which gives way to the collation of the column (and of its
 * index) once it comes out of a sub-select.
 */
#define AS_C		" COLLATE pg_catalog.\"C\""
#define AS_DEFAULT	" COLLATE pg_catalog.\"default\""

#endif							/* SEQINBOX_SQL_H */
