-- Every function, in inboxes and for roles, sequences, message types, IDs and
-- headers with names that need quotes, look like SQL, are keywords, or are as
-- long as a name can be. (In a database of another encoding than UTF8 there is
-- nothing to test; that output is expected/strange_names_1.out.)
SELECT getdatabaseencoding() <> 'UTF8' AS other_encoding \gset
\if :other_encoding
\quit
\endif
SET client_encoding = 'UTF8';
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
\set ECHO none
\i test/every_function.sql
\set ECHO all
\set SHOW_CONTEXT never
\pset null '-'

CREATE TABLE every_function.name (n int PRIMARY KEY, name text NOT NULL);
INSERT INTO every_function.name
VALUES (1, 'a"b''c\d e'), (2, '$inbox'), (3, '%s %n %1$s'), (4, 'select'), (5, 'a.b'), (6, '"'), (7, ''''),
       (8, '\'), (9, E'\x01\t\n\r\x7f'), (10, '''; DROP SCHEMA every_function CASCADE; --'), (11, '/* "$user", $1'),
       (12, '-'), (13, 'Größe «ß»'), (14, '発送𝄞'), (15, U&'e\0301\202e\feff'), (16, repeat('x', 63)),
       (17, repeat('ü', 31) || '"'), (18, repeat('"', 63)), (19, 'none'), (20, 'current_user');
SELECT max(octet_length(name)) AS bytes FROM every_function.name;
\set ECHO none
SELECT format('CREATE ROLE %I', 'regress_' || n || left(name, 20)) FROM every_function.name ORDER BY n \gexec
\set ECHO all

SELECT * FROM every_function.not_called;
-- for each name, all of them come to the same
SELECT c.function, replace(c.result, n.name, '*') AS result, count(*)
  FROM every_function.name n
 CROSS JOIN LATERAL every_function.call_all(n.name::name, quote_ident(n.name), n.name, 'B.' || n.name, n.name,
                                            ('regress_' || n.n || left(n.name, 20))::name,
                                            every_function.document(n.name)) AS c
 GROUP BY 1, 2 ORDER BY 1, 2;

-- as the role, along a path with the user's own schema; and the procedure
\pset format unaligned
\pset tuples_only
\set ECHO none
SELECT format('SET ROLE %I', 'regress_' || n || left(name, 20)), format('SET search_path = "$user", %I', name),
       'SELECT outcome FROM seqinbox_receive(' || quote_literal(name) || ', ''new'', ''new'', ''v'')',
       'CALL seqinbox_housekeeping()', 'RESET ROLE'
  FROM every_function.name ORDER BY n \gexec
\set ECHO all
\pset tuples_only off
\pset format aligned
RESET search_path;

-- the bytes of another encoding, or of none, are no text, so no function ever
-- sees them
SELECT seqinbox_claim(convert_from('\xff', 'UTF8'), 'id');
\echo :SQLSTATE
SELECT seqinbox_claim(E'a\xc3', 'id');
\echo :SQLSTATE
SELECT seqinbox_claim(convert_from('\x6100', 'UTF8'), 'id');
\echo :SQLSTATE
SELECT seqinbox_declare('{"sequences": [{"name": "\u0000", "retentionPeriod": "1 day", "messages": []}]}');
\echo :SQLSTATE
SELECT seqinbox_declare('{"sequences": [{"name": "\ud800", "retentionPeriod": "1 day", "messages": []}]}');
\echo :SQLSTATE

SET client_min_messages = warning;
\set ECHO none
SELECT format('DROP SCHEMA %I CASCADE', name), format('DROP ROLE %I', 'regress_' || n || left(name, 20))
  FROM every_function.name ORDER BY n \gexec
\set ECHO all
DROP SCHEMA every_function CASCADE;
