-- seqinbox_grant: on which inbox, to whom, and by whom. What a role can do then
-- is tested elsewhere, function by function.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('grant');
SELECT seqinbox_create_inbox('grant_other');
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE ROLE regress_grant_reader;
CREATE ROLE regress_grant_writer;
SET search_path = "grant";
CREATE FUNCTION rights(role name)
RETURNS TABLE (object text, rights text) LANGUAGE sql AS $$
    SELECT nspname, string_agg(privilege_type, ', ' ORDER BY privilege_type)
      FROM pg_namespace, aclexplode(nspacl) WHERE grantee = rights.role::regrole GROUP BY 1
    UNION ALL
    SELECT oid::regclass::text, string_agg(privilege_type, ', ' ORDER BY privilege_type)
      FROM pg_class, aclexplode(relacl) WHERE grantee = rights.role::regrole GROUP BY 1
    UNION ALL
    SELECT attrelid::regclass::text, privilege_type || ' ' || string_agg(attname, ', ' ORDER BY attnum)
      FROM pg_attribute, aclexplode(attacl) WHERE grantee = rights.role::regrole GROUP BY attrelid, privilege_type
    ORDER BY 1, 2;
$$;
CREATE FUNCTION rights_of_everyone() RETURNS bigint LANGUAGE sql AS $$
    SELECT (SELECT count(*) FROM pg_class, aclexplode(relacl)
             WHERE relnamespace IN ('"grant"'::regnamespace, 'grant_other'::regnamespace) AND grantee = 0) +
           (SELECT count(*) FROM pg_namespace, aclexplode(nspacl)
             WHERE nspname IN ('grant', 'grant_other') AND grantee = 0);
$$;

-- a new inbox is its owner's
SELECT rights_of_everyone();

-- each privilege, on the inbox in use and no other
SELECT * FROM rights('regress_grant_reader');
SELECT seqinbox_grant('regress_grant_reader', 'observer');
SELECT * FROM rights('regress_grant_reader');
SELECT seqinbox_grant('regress_grant_writer', 'consumer');
SELECT * FROM rights('regress_grant_writer');
SELECT rights_of_everyone();

-- once more changes nothing; another privilege adds to what there is
CREATE TABLE before AS SELECT * FROM rights('regress_grant_writer');
SELECT seqinbox_grant('regress_grant_writer', 'consumer');
(TABLE before EXCEPT SELECT * FROM rights('regress_grant_writer'))
UNION ALL
(SELECT * FROM rights('regress_grant_writer') EXCEPT TABLE before);
SELECT seqinbox_grant('regress_grant_writer', 'operator');
SELECT * FROM rights('regress_grant_writer');
-- rolled back
BEGIN;
SELECT seqinbox_grant('regress_grant_reader', 'operator');
ROLLBACK;
SELECT count(*) FROM rights('regress_grant_reader') WHERE rights ~ 'INSERT';

-- the inbox in use is the first of the path
SET search_path = grant_other, "grant";
SELECT seqinbox_grant('regress_grant_reader', 'observer');
SELECT object FROM "grant".rights('regress_grant_reader') WHERE rights = 'USAGE';

-- names that need quotes
SET client_min_messages = warning;
CREATE ROLE "regress grant ""$inbox""";
SELECT seqinbox_create_inbox('Schema "of" grants');
RESET client_min_messages;
SET search_path = "Schema ""of"" grants";
SELECT seqinbox_grant('regress grant "$inbox"', 'consumer');
SELECT has_table_privilege('regress grant "$inbox"', 'sequenced_message', 'INSERT');
SET search_path = "grant";

-- only the owner can grant, or who acts for the owner
CREATE ROLE regress_grant_owner;
SET ROLE regress_grant_writer;
SELECT seqinbox_grant('regress_grant_owner', 'consumer');
\echo :SQLSTATE
RESET ROLE;
SET ROLE regress_grant_owner;
SELECT seqinbox_grant('regress_grant_owner', 'consumer');
\echo :SQLSTATE
RESET ROLE;
SELECT * FROM rights('regress_grant_owner');
CREATE SCHEMA grant_own AUTHORIZATION regress_grant_owner;
GRANT regress_grant_owner TO regress_grant_writer;
SET client_min_messages = warning;
SET search_path = grant_own;
SET ROLE regress_grant_owner;
SELECT seqinbox_create_inbox();
SELECT seqinbox_grant('regress_grant_reader', 'observer');
SET ROLE regress_grant_writer;
SELECT seqinbox_grant('regress_grant_reader', 'consumer');
RESET ROLE;
RESET client_min_messages;
SELECT object, grantor::regrole
  FROM (SELECT relname AS object, relacl AS acl FROM pg_class
         WHERE relnamespace = 'grant_own'::regnamespace AND relname = 'sequenced_message') AS c,
       aclexplode(acl) WHERE grantee = 'regress_grant_reader'::regrole AND privilege_type = 'INSERT';
SET search_path = "grant";

-- to whom, and what
SELECT seqinbox_grant(NULL, 'consumer');
\echo :SQLSTATE
SELECT seqinbox_grant('regress_grant_reader', NULL);
\echo :SQLSTATE
SELECT seqinbox_grant('regress_grant_reader', '');
\echo :SQLSTATE
SELECT seqinbox_grant('regress_grant_reader', 'owner');
\echo :SQLSTATE
SELECT seqinbox_grant('regress_grant_reader', 'Consumer');
\echo :SQLSTATE
SELECT seqinbox_grant('regress_grant_nobody', 'consumer');
\echo :SQLSTATE
SELECT seqinbox_grant('', 'consumer');
\echo :SQLSTATE
SELECT seqinbox_grant('public', 'consumer');
\echo :SQLSTATE
SELECT seqinbox_grant('PUBLIC', 'consumer');
\echo :SQLSTATE
SELECT seqinbox_grant('none', 'consumer');
\echo :SQLSTATE
SELECT seqinbox_grant('current_user', 'consumer');
\echo :SQLSTATE
SELECT rights_of_everyone();
BEGIN READ ONLY;
SELECT seqinbox_grant('regress_grant_reader', 'consumer');
\echo :SQLSTATE
ROLLBACK;
SET search_path = '';
SELECT seqinbox_grant('regress_grant_reader', 'consumer');
\echo :SQLSTATE
RESET search_path;

SET client_min_messages = warning;
DROP SCHEMA "grant" CASCADE;
DROP SCHEMA grant_other CASCADE;
DROP SCHEMA grant_own CASCADE;
DROP SCHEMA "Schema ""of"" grants" CASCADE;
DROP ROLE regress_grant_reader;
DROP ROLE regress_grant_writer;
DROP ROLE regress_grant_owner;
DROP ROLE "regress grant ""$inbox""";
