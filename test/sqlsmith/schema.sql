-- What sqlsmith is to see, after test/hostile/inbox.sql. It reads pg_proc once,
-- by the search path. The view shows it the functions of the extension, the
-- set-returning ones as if they were none, and those of the server that change
-- nothing: so it calls ours in each of its queries, and can't stop the server.
-- (Left out are the version, which it would call most, and the cast of intervals,
-- which gives internal errors of the server's own.) In the other views, our set-returning functions are tables.
CREATE SCHEMA smith;
SET search_path = inbox;
CREATE VIEW smith.pg_proc AS
SELECT p.oid, p.proname, p.pronamespace, p.prorettype, p.proargtypes, p.prokind,
       p.proretset AND d.objid IS NULL AS proretset
  FROM pg_catalog.pg_proc p
  LEFT JOIN pg_depend d ON d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
       AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'seqinbox')
 WHERE p.prokind <> 'p' AND p.proname NOT IN ('interval', 'seqinbox_version')
   AND (d.objid IS NOT NULL
        OR p.provolatile = 'i' AND p.oid::bigint % 20 = 0
        OR p.prokind = 'a' AND p.proname IN ('count', 'max', 'min', 'sum'));
CREATE VIEW smith.waiting AS SELECT * FROM seqinbox_waiting();
CREATE VIEW smith.message_stats AS SELECT * FROM seqinbox_message_stats();
CREATE VIEW smith.instance_stats AS SELECT * FROM seqinbox_instance_stats();
CREATE VIEW smith.next AS SELECT * FROM seqinbox_next();
CREATE VIEW smith.looked_up AS
SELECT m.id AS message, l.* FROM sequenced_message m, seqinbox_lookup(m.message_type, m.idempotence_id) AS l;
CREATE VIEW smith.batch AS
SELECT b.* FROM (SELECT array_agg(message_type) AS types, array_agg(idempotence_id) AS ids FROM sequenced_message) AS m,
       seqinbox_receive_batch(types, ids, ids, array_fill(NULL::bytea, ARRAY[cardinality(ids)])) AS b;
SET search_path = smith;
