# InboxStructure: the structure and the content of an inbox as text that can
# be compared, without the names and the order that may differ.

package InboxStructure;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(inbox_columns inbox_indexes inbox_constraints catalog_rows
  storage content);

# With the inbox as search_path no definition mentions its schema.
sub rows
{
    my ($node, $schema, $sql, $dbname) = @_;

    return split /\n/, $node->safe_psql($dbname // 'postgres',
        "SET search_path = $schema; $sql");
}

# Name, type, NOT NULL and default of each column.
sub inbox_columns
{
    my ($node, $schema) = @_;

    return rows($node, $schema, q{
        SELECT c.relname || '.' || a.attname || ' '
               || format_type(a.atttypid, a.atttypmod)
               || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
               || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '')
          FROM pg_class c
          JOIN pg_attribute a ON a.attrelid = c.oid
          LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
         WHERE c.relnamespace = quote_ident(current_schema())::regnamespace
           AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
         ORDER BY 1});
}

# Table, uniqueness, kind, columns and predicate of each valid index.
sub inbox_indexes
{
    my ($node, $schema) = @_;

    return rows($node, $schema, q{
        SELECT c.relname || CASE WHEN i.indisunique THEN ' UNIQUE' ELSE '' END
               || coalesce(' USING ' || nullif(a.amname, 'btree'), '')
               || ' (' || (SELECT string_agg(pg_get_indexdef(i.indexrelid, k, true),
                                             ', ' ORDER BY k)
                             FROM generate_series(1, i.indnkeyatts) AS k) || ')'
               || coalesce(' WHERE ' || pg_get_expr(i.indpred, i.indrelid), '')
          FROM pg_index i
          JOIN pg_class c ON c.oid = i.indrelid
          JOIN pg_class ic ON ic.oid = i.indexrelid
          JOIN pg_am a ON a.oid = ic.relam
         WHERE c.relnamespace = quote_ident(current_schema())::regnamespace
           AND i.indisvalid
         ORDER BY 1});
}

# Primary and foreign keys. (Uniqueness alone may be an index as well.)
sub inbox_constraints
{
    my ($node, $schema) = @_;

    return rows($node, $schema, q{
        SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid)
          FROM pg_constraint
         WHERE connamespace = quote_ident(current_schema())::regnamespace
           AND contype IN ('p', 'f')
         ORDER BY 1});
}

# The catalog rows of a schema with the transactions that wrote them: the same
# text again means that nothing was changed, not even to the same value.
sub catalog_rows
{
    my ($node, $schema, $dbname) = @_;

    return join("\n", rows($node, $schema, q{
        WITH relation AS (
            SELECT c.oid FROM pg_class c
             WHERE c.relnamespace = quote_ident(current_schema())::regnamespace)
        SELECT 'namespace', oid, xmin, nspacl::text
          FROM pg_namespace WHERE oid = quote_ident(current_schema())::regnamespace
        UNION ALL
        SELECT 'class', oid, xmin, relname || relfilenode
          FROM pg_class WHERE oid IN (SELECT oid FROM relation)
        UNION ALL
        SELECT 'attribute', attrelid, xmin, attname
          FROM pg_attribute WHERE attrelid IN (SELECT oid FROM relation)
        UNION ALL
        SELECT 'default', oid, xmin, NULL
          FROM pg_attrdef WHERE adrelid IN (SELECT oid FROM relation)
        UNION ALL
        SELECT 'index', indexrelid, xmin, NULL
          FROM pg_index WHERE indexrelid IN (SELECT oid FROM relation)
        UNION ALL
        SELECT 'constraint', oid, xmin, conname
          FROM pg_constraint WHERE connamespace = quote_ident(current_schema())::regnamespace
        UNION ALL
        SELECT 'description', objoid, xmin, description
          FROM pg_description
         WHERE classoid = 'pg_class'::regclass
           AND objoid IN (SELECT oid FROM relation)
        UNION ALL
        SELECT 'sequence', seqrelid, xmin, seqincrement || ' ' || seqstart
          FROM pg_sequence WHERE seqrelid IN (SELECT oid FROM relation)
        ORDER BY 1, 2, 4}, $dbname));
}

# The files of the tables and of their indexes, as far as they were there
# when the names were listed.
sub storage
{
    my ($node, $schema) = @_;

    return rows($node, $schema, q{
        SELECT relname || ' ' || relfilenode FROM pg_class
         WHERE relnamespace = quote_ident(current_schema())::regnamespace
           AND relkind IN ('r', 'i', 'S')
         ORDER BY 1});
}

# Number and checksum of those rows of a table that a condition names, in the
# given columns.
sub content
{
    my ($node, $schema, $table, $columns, $condition) = @_;

    return "$table: " . join('', rows($node, $schema, qq{
        SELECT count(*) || ' ' || md5(coalesce(string_agg(line, E'\\n' ORDER BY line), ''))
          FROM (SELECT x::text FROM (SELECT $columns FROM $table WHERE $condition) AS x)
               AS lines (line)}));
}

1;
