-- The plans that a session keeps: one for each statement and inbox, however
-- often the functions are called, and whatever comes between.
\set QUIET 1
\pset format unaligned
\pset tuples_only on
BEGIN;
SET client_min_messages = error;
CREATE EXTENSION IF NOT EXISTS pgtap;
CREATE EXTENSION IF NOT EXISTS seqinbox;
-- to compile plans takes longer here than to run them
SELECT plan(35);
SELECT current_setting('server_version_num')::int < 140000 AS old \gset
\if :old
SELECT skip('pg_backend_memory_contexts is there from version 14 on', 35);
SELECT * FROM finish();
ROLLBACK;
\quit
\endif

DO $$
BEGIN
    PERFORM seqinbox_create_inbox('pgtap_one');
    PERFORM seqinbox_create_inbox('pgtap_two');
END
$$;
SELECT set_config('search_path', 'pgtap_one, ' || current_setting('search_path'), true) \gset
SELECT seqinbox_declare('{"sequences": [{"name": "S", "retentionPeriod": "24h",
    "messages": [{"type": "A"}, {"type": "B", "releaseCondition": {"predecessor": "A"}}]}]}') \gset
SELECT seqinbox_open_instance('S', 'one') AS instance \gset
CREATE TEMPORARY TABLE setting AS SELECT :instance::bigint AS instance;

CREATE FUNCTION pg_temp.plans() RETURNS bigint LANGUAGE sql AS
$$SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'CachedPlanSource'$$;
-- only those of the extension's statements, which name their inbox; not those
-- of this test, nor those that the server keeps for foreign keys
CREATE FUNCTION pg_temp.own_plans() RETURNS bigint LANGUAGE sql AS
$$SELECT count(*) FROM pg_backend_memory_contexts
   WHERE name = 'CachedPlanSource' AND ident ~ '\mpgtap_(one|two|gone)\.'$$;

-- messages to act upon, so that each call has something to do
CREATE FUNCTION pg_temp.waiting() RETURNS bigint LANGUAGE sql AS
$$SELECT seqinbox_store('B', 'waiting ' || n, (SELECT instance FROM setting), 'WAITING', 'value', 'key', '{h}', '{v}')
    FROM nextval('sequenced_message_sequence') AS n$$;
CREATE FUNCTION pg_temp.failed() RETURNS bigint LANGUAGE sql AS
$$SELECT seqinbox_store('B', 'failed ' || n, (SELECT instance FROM setting), 'FAILED', 'value', 'key', '{h}', '{v}')
    FROM nextval('sequenced_message_sequence') AS n$$;

-- a call of each function, with n for what has to be new in each call
CREATE TEMPORARY TABLE call (function text, call text);
INSERT INTO call
VALUES ('seqinbox_claim', 'seqinbox_claim(''A'', ''claim '' || n), seqinbox_claim(''A'', ''claim '' || n, instance)'),
       ('seqinbox_close', 'seqinbox_close(seqinbox_open_instance(''T'', ''close '' || n, ''1 day''))'),
       ('seqinbox_consume', 'seqinbox_consume(pg_temp.waiting())'),
       ('seqinbox_consume_all', 'seqinbox_consume_all(instance)'),
       ('seqinbox_create_inbox', 'seqinbox_create_inbox(''pgtap_one'')'),
       ('seqinbox_dead_letter', 'seqinbox_dead_letter(pg_temp.waiting(), ''reason'')'),
       ('seqinbox_declare', 'seqinbox_declare(''{"sequences": [{"name": "D", "retentionPeriod": "24h", "messages": [{"type": "D"}]}]}'')'),
       ('seqinbox_diagram', 'seqinbox_diagram(''S''), seqinbox_diagram(''S'', ''one'')'),
       ('seqinbox_expire', 'seqinbox_expire(pg_temp.waiting())'),
       ('seqinbox_fail_and_release', 'seqinbox_fail_and_release(pg_temp.waiting(), ''error'', ''1 day'')'),
       ('seqinbox_instance_stats', '(SELECT count(*) FROM seqinbox_instance_stats())'),
       ('seqinbox_is_releasable', 'seqinbox_is_releasable(''B'', instance)'),
       ('seqinbox_lookup', 'seqinbox_lookup(''A'', ''lookup'')'),
       ('seqinbox_message_stats', '(SELECT count(*) FROM seqinbox_message_stats())'),
       ('seqinbox_next', '(SELECT count(*) FROM seqinbox_next()), (SELECT count(*) FROM seqinbox_next(instance))'),
       ('seqinbox_open_instance', 'seqinbox_open_instance(''S'', ''open '' || n), seqinbox_open_instance(''T'', ''open'', ''1 day'')'),
       ('seqinbox_receive', 'seqinbox_receive(''A'', ''receive '' || n, ''one'', ''value''),
                             seqinbox_receive(''B'', ''receive '' || n, ''receive '' || n, ''value'', ''key'', ''{h}'', ''{v}'')'),
       ('seqinbox_receive_batch', '(SELECT count(*) FROM seqinbox_receive_batch(''{A,B}'', ARRAY[''a '' || n, ''b '' || n],
                                   ''{batch,one}'', ''{1,2}'', NULL, ''{1,2}'', ''{h,i,j}'', ''{u,v,w}''))'),
       ('seqinbox_record_failure', 'seqinbox_record_failure(''B'', ''failure '' || n, ''one'', ''error'', ''value'', retry_after => ''1 day'')'),
       ('seqinbox_requeue', 'seqinbox_requeue(seqinbox_dead_letter(pg_temp.waiting(), ''reason''))'),
       ('seqinbox_retry', 'seqinbox_retry(pg_temp.failed())'),
       ('seqinbox_store', 'seqinbox_store(''A'', ''store '' || n, instance, ''PROCESSED''),
                           seqinbox_store(''B'', ''store '' || n, instance, ''WAITING'', ''value'', ''key'', ''{h}'', ''{v}'')'),
       ('seqinbox_try_claim', 'seqinbox_try_claim(''A'', ''try '' || n), seqinbox_try_claim(''A'', ''try'', instance)'),
       ('seqinbox_version', 'seqinbox_version()'),
       ('seqinbox_waiting', '(SELECT count(*) FROM seqinbox_waiting())');
SELECT set_eq('SELECT function FROM call',
              $$SELECT p.proname::text FROM pg_depend d
                  JOIN pg_extension e ON e.oid = d.refobjid JOIN pg_proc p ON p.oid = d.objid
                 WHERE d.refclassid = 'pg_extension'::regclass AND d.classid = 'pg_proc'::regclass
                   AND d.deptype = 'e' AND e.extname = 'seqinbox'
                   AND p.prokind = 'f' AND p.proname <> 'seqinbox_grant'$$,
              'there is a call for each function but seqinbox_grant, which keeps no plan');

-- each 2,000 times; the calls before fill the cache, and what they all wrote
-- is undone
CREATE FUNCTION pg_temp.run(call text, first integer, last integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR n IN first .. last LOOP
        EXECUTE 'SELECT ' || call || ' FROM (SELECT $1::text AS n, instance FROM setting) AS s' USING n;
    END LOOP;
END
$$;
CREATE FUNCTION pg_temp.more_plans(call text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
BEGIN
    PERFORM pg_temp.run(call, -2, 0);
    before := pg_temp.plans();
    PERFORM pg_temp.run(call, 1, 2000);
    RAISE SQLSTATE 'UNDO0' USING MESSAGE = pg_temp.plans() - before;
EXCEPTION WHEN SQLSTATE 'UNDO0' THEN
    RETURN sqlerrm::bigint;
END
$$;
SELECT pg_temp.more_plans('1') \gset
SELECT is(pg_temp.more_plans(call), 0::bigint, function || ' makes no plan twice') FROM call ORDER BY function;

-- the plans are there at all, so that they are what is counted
SELECT cmp_ok(pg_temp.own_plans(), '>', 30::bigint, 'plans are kept');

-- and used: while a plan is made, the planner evaluates an immutable function
-- in a constraint
CREATE SEQUENCE pg_temp.planned;
CREATE FUNCTION pg_temp.count_plan() RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('pg_temp.planned');
    RETURN true;
END
$$;
SET LOCAL constraint_exclusion = on;
ALTER TABLE sequenced_message ADD CONSTRAINT planned CHECK (pg_temp.count_plan());
CREATE FUNCTION pg_temp.more_planning(calls integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    before bigint := nextval('pg_temp.planned');
BEGIN
    PERFORM pg_temp.run('seqinbox_lookup(''A'', n)', 1, calls);
    RETURN nextval('pg_temp.planned') - before - 1;
END
$$;
SELECT results_eq('SELECT pg_temp.more_planning(1) > 0, pg_temp.more_planning(2000)', 'VALUES (true, 0::bigint)',
                  'a plan is made once, and kept');
ALTER TABLE sequenced_message DROP CONSTRAINT planned;
RESET constraint_exclusion;

-- calls that fail
CREATE FUNCTION pg_temp.fail(call text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'SELECT ' || call || ' FROM setting';
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    RETURN sqlstate;
END
$$;
CREATE FUNCTION pg_temp.more_plans_by_errors(call text, OUT errors text[], OUT more bigint) LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
    error text;
BEGIN
    FOR n IN 1 .. 2000 LOOP
        IF n = 5 THEN
            before := pg_temp.own_plans();
        END IF;
        error := pg_temp.fail(call);
        IF error <> ALL (coalesce(errors, '{}')) THEN
            errors := errors || error;
        END IF;
    END LOOP;
    more := pg_temp.own_plans() - before;
END
$$;
SELECT results_eq(
    $$SELECT e.* FROM unnest(ARRAY['seqinbox_claim(''A'', ''x'', 0)', 'seqinbox_try_claim(''A'', ''x'', 0)',
                                   'seqinbox_fail_and_release(0)', 'seqinbox_store(''A'', ''x'', 0, ''FAILED'')',
                                   'seqinbox_record_failure(''X'', ''x'', ''x'', ''x'')',
                                   'seqinbox_open_instance(''X'', ''x'')']) WITH ORDINALITY AS c (call, n),
                    pg_temp.more_plans_by_errors(call) AS e ORDER BY n$$,
    $$VALUES ('{P0002}'::text[], 0::bigint), ('{P0002}', 0), ('{P0002}', 0), ('{P0002}', 0), ('{42704}', 0), ('{42704}', 0)$$,
    'nor do calls that fail');
-- among them those whose statement cannot be prepared
ALTER TABLE sequenced_message RENAME TO away;
SELECT results_eq($$SELECT * FROM pg_temp.more_plans_by_errors('seqinbox_lookup(''A'', ''x'')')$$,
                  $$VALUES ('{42P01}'::text[], 0::bigint)$$, 'nor where a table is missing');
ALTER TABLE away RENAME TO sequenced_message;
-- or can, but has no plan: the planner evaluates the constraint
CREATE FUNCTION pg_temp.may_plan() RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('pgtap.planning', true) = 'fails' THEN
        RAISE division_by_zero;
    END IF;
    RETURN true;
END
$$;
ALTER TABLE sequenced_message ADD CONSTRAINT may_plan CHECK (pg_temp.may_plan());
SET LOCAL constraint_exclusion = on;
SET LOCAL pgtap.planning = 'fails';
SELECT results_eq($$SELECT * FROM pg_temp.more_plans_by_errors('seqinbox_lookup(''A'', ''x'')')$$,
                  $$VALUES ('{22012}'::text[], 0::bigint)$$, 'nor where no plan can be made');
RESET pgtap.planning;
RESET constraint_exclusion;
SELECT results_eq($$SELECT * FROM pg_temp.more_plans_by_errors('seqinbox_lookup(''A'', ''x'')')$$,
                  $$VALUES ('{no error}'::text[], 0::bigint)$$, 'and afterwards it can');
ALTER TABLE sequenced_message DROP CONSTRAINT may_plan;

-- two inboxes in turn
CREATE FUNCTION pg_temp.both(n integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR inbox IN 1 .. 2 LOOP
        PERFORM set_config('search_path', CASE inbox WHEN 1 THEN 'pgtap_one' ELSE 'pgtap_two' END, true);
        PERFORM seqinbox_claim('A', 'both');
        PERFORM seqinbox_try_claim('A', 'both');
        PERFORM seqinbox_store('A', 'both ' || n, seqinbox_open_instance('T', 'both', '1 day'), 'WAITING', 'value');
        PERFORM seqinbox_lookup('A', 'both');
    END LOOP;
END
$$;
CREATE FUNCTION pg_temp.more_plans_by_switching() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    path text := current_setting('search_path');
    before bigint;
BEGIN
    PERFORM pg_temp.both(n) FROM generate_series(1, 3) AS n;
    before := pg_temp.own_plans();
    PERFORM pg_temp.both(n) FROM generate_series(4, 2003) AS n;
    PERFORM set_config('search_path', path, true);
    RETURN pg_temp.own_plans() - before;
END
$$;
SELECT is(pg_temp.more_plans_by_switching(), 0::bigint, 'nor when inboxes take turns');

-- a plan that is out of date makes room for its successor
CREATE FUNCTION pg_temp.more_plans_by_changes() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
BEGIN
    FOR n IN 1 .. 100 LOOP
        IF n = 5 THEN
            before := pg_temp.own_plans();
        END IF;
        EXECUTE 'ALTER TABLE sequenced_message ALTER COLUMN topic SET STATISTICS ' || n;
        EXECUTE 'ALTER TABLE sequential_inbox_idempotence ALTER COLUMN created_at SET STATISTICS ' || n;
        EXECUTE 'ALTER TABLE sequence_instance ALTER COLUMN state SET STATISTICS ' || n;
        PERFORM pg_temp.run('seqinbox_claim(''A'', n), seqinbox_lookup(''A'', n), seqinbox_open_instance(''T'', n, ''1 day'')', n, n);
    END LOOP;
    RETURN pg_temp.own_plans() - before;
END
$$;
SELECT is(pg_temp.more_plans_by_changes(), 0::bigint, 'nor when tables change');

-- the plans of an inbox that is gone go as well
CREATE FUNCTION pg_temp.more_plans_by_inboxes() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    path text := current_setting('search_path');
    before bigint;
BEGIN
    FOR n IN 1 .. 20 LOOP
        IF n = 5 THEN
            before := pg_temp.own_plans();
        END IF;
        PERFORM seqinbox_create_inbox('pgtap_gone');
        PERFORM set_config('search_path', 'pgtap_gone', true);
        PERFORM seqinbox_claim('A', 'gone');
        PERFORM seqinbox_lookup('A', 'gone');
        PERFORM set_config('search_path', path, true);
        DROP SCHEMA pgtap_gone CASCADE;
    END LOOP;
    RETURN pg_temp.own_plans() - before;
END
$$;
SELECT is(pg_temp.more_plans_by_inboxes(), 0::bigint, 'nor when inboxes come and go');

SELECT * FROM finish();
ROLLBACK;
