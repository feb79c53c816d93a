-- seqinbox_declare: what a document may say, and what it replaces.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('declare');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = declare;
SET timezone = 'UTC';
SET datestyle = 'ISO';

CREATE VIEW declared AS
SELECT t.sequence_name AS sequence, t.place, t.message_type, t.sub_type, t.release_condition
  FROM message_type_declaration t ORDER BY t.sequence_name, t.place;

-- the least that a document can be
SELECT seqinbox_declare('{"sequences": [{"name": "Least", "retentionPeriod": "1 day", "messages": [{"type": "Only"}]}]}');
SELECT name, retention_period, sequencing_start_timestamp, declared_at <= now() AS declared
  FROM sequence_declaration;
SELECT * FROM declared;

-- two sequences with sub-types; a predecessor may be declared further down
SELECT seqinbox_declare('{"sequences": [
    {"name": "OrderSequence", "retentionPeriod": "24h",
     "messages": [{"type": "OrderShipped", "releaseCondition": {"and": [{"predecessor": "OrderValidated.STOCK"},
                                                                        {"predecessor": "OrderPrepared"}]}},
                  {"type": "OrderCreated"},
                  {"type": "OrderValidated", "subType": "STOCK", "releaseCondition": {"predecessor": "OrderCreated"}},
                  {"type": "OrderValidated", "subType": "CREDIT", "releaseCondition": {"predecessor": "OrderCreated"}},
                  {"type": "OrderPrepared", "releaseCondition": {"predecessor": "OrderCreated"}}]},
    {"name": "Invoice sequence", "retentionPeriod": "P30D", "sequencingStartTimestamp": "2026-05-01T06:00:00+02:00",
     "messages": [{"type": "Invoice"}, {"type": "Payment", "releaseCondition": {"predecessor": "Invoice"}}]}]}');
SELECT name, retention_period, sequencing_start_timestamp FROM sequence_declaration ORDER BY name;
SELECT * FROM declared;

-- a sequence is replaced as a whole; others stay
SELECT seqinbox_declare('{"sequences": [
    {"name": "Invoice sequence", "retentionPeriod": "P1W",
     "messages": [{"type": "Payment"}, {"type": "Reminder", "releaseCondition": {"predecessor": "Payment"}}]}]}');
SELECT name, retention_period, sequencing_start_timestamp FROM sequence_declaration ORDER BY name;
SELECT * FROM declared WHERE sequence <> 'OrderSequence';
SELECT count(*) FROM declared WHERE sequence = 'OrderSequence';

-- a type moves to another sequence, two exchange theirs, and a type takes on
-- sub-types: in one document, whose sequences are replaced together
SELECT seqinbox_declare('{"sequences": [
    {"name": "Invoice sequence", "retentionPeriod": "1 week",
     "messages": [{"type": "Only"}, {"type": "Reminder", "subType": "x"}]},
    {"name": "Least", "retentionPeriod": "1 day", "messages": [{"type": "Payment"}]}]}');
SELECT * FROM declared WHERE sequence <> 'OrderSequence';
SELECT seqinbox_declare('{"sequences": [
    {"name": "Least", "retentionPeriod": "1 day", "messages": [{"type": "Only"}]},
    {"name": "New", "retentionPeriod": "1 day", "messages": [{"type": "Payment"}]},
    {"name": "Invoice sequence", "retentionPeriod": "1 week", "messages": [{"type": "Reminder"}]}]}');
SELECT * FROM declared WHERE sequence <> 'OrderSequence';

-- all or nothing: the second sequence of the document takes a type that a
-- third one, which it does not name, holds
SELECT seqinbox_declare('{"sequences": [
    {"name": "Least", "retentionPeriod": "9 days", "messages": [{"type": "Other"}]},
    {"name": "New", "retentionPeriod": "9 days", "messages": [{"type": "Reminder"}]}]}');
\echo :SQLSTATE
SELECT * FROM declared WHERE sequence <> 'OrderSequence';
SELECT name, retention_period FROM sequence_declaration ORDER BY name;
-- also with the transaction around it
BEGIN;
SELECT seqinbox_declare('{"sequences": [{"name": "Least", "retentionPeriod": "9 days", "messages": [{"type": "Other"}]}]}');
ROLLBACK;
SELECT * FROM declared WHERE sequence = 'Least';

-- the same document again changes nothing
CREATE TABLE before AS SELECT * FROM declared;
SELECT seqinbox_declare('{"sequences": [{"name": "Least", "retentionPeriod": "1 day", "messages": [{"type": "Only"}]}]}');
SELECT count(*) FROM (TABLE before EXCEPT TABLE declared UNION ALL (TABLE declared EXCEPT TABLE before)) AS difference;

-- keys that concern only the consumer are ignored, whatever they hold
SELECT seqinbox_declare('{
    "subTypeResolvers": {"Validated": "com.example.Resolver"},
    "sequences": [{"name": "Least", "retentionPeriod": "1 day",
                   "topic": "a", "topics": ["a", "b"], "clusterName": null, "contextIdExtractor": {"path": "$.id"},
                   "messageFilter": true,
                   "messages": [{"type": "Only", "topic": "a", "topics": [], "clusterName": "main",
                                 "contextIdExtractor": "com.example.Extractor", "messageFilter": {"not": 42}}]}]}');
SELECT count(*) FROM (TABLE before EXCEPT TABLE declared UNION ALL (TABLE declared EXCEPT TABLE before)) AS difference;

-- retention periods, as intervals are written and in ISO 8601
SELECT period, seqinbox_declare(jsonb_build_object('sequences', jsonb_build_array(jsonb_build_object(
                   'name', 'Retention ' || period, 'retentionPeriod', period,
                   'messages', jsonb_build_array(jsonb_build_object('type', 'Type ' || period))))))
  FROM unnest('{24h,90 minutes,1 day 12:00,3 mons,0.5s,PT24H,P1DT12H,P3M,PT0.5S,P1Y2M3DT4H5M6S}'::text[]) AS period;
SELECT name, retention_period FROM sequence_declaration WHERE name LIKE 'Retention %' ORDER BY name;

-- the start of sequencing: no start, in the past, in the future, never
SELECT start, seqinbox_declare(jsonb_build_object('sequences', jsonb_build_array(jsonb_build_object(
                  'name', 'Start ' || start, 'retentionPeriod', '1 day', 'sequencingStartTimestamp', start,
                  'messages', jsonb_build_array(jsonb_build_object('type', 'Type ' || start))))))
  FROM unnest('{2020-01-01,2999-12-31T23:59:59.5-01:00,2999-06-01 12:00 UTC,-infinity,infinity}'::text[]) AS start;
SELECT name, sequencing_start_timestamp FROM sequence_declaration WHERE name LIKE 'Start %' ORDER BY name;

-- conditions: nested, without being shortened; a predecessor twice, but not
-- side by side; predecessors that meet again are no cycle
SELECT seqinbox_declare('{"sequences": [{"name": "Conditions", "retentionPeriod": "1 day", "messages": [
    {"type": "a"},
    {"type": "b", "releaseCondition": {"predecessor": "a"}},
    {"type": "c", "releaseCondition": {"predecessor": "a"}},
    {"type": "d", "releaseCondition": {"or": [{"predecessor": "b"}, {"predecessor": "c"}]}},
    {"type": "e", "releaseCondition": {"or": [
        {"and": [{"predecessor": "b"}, {"predecessor": "c"}]},
        {"and": [{"predecessor": "b"}, {"predecessor": "d"}]},
        {"predecessor": "a"}]}},
    {"type": "f", "releaseCondition": {"and": [
        {"and": [{"predecessor": "a"}, {"and": [{"predecessor": "b"}, {"predecessor": "c"}]}]},
        {"or": [{"predecessor": "d"}, {"predecessor": "e"}]}]}}]}]}');
SELECT message_type, release_condition FROM declared WHERE sequence = 'Conditions';

-- names: letter case, dots, blanks, quotes, what looks like markup or a path
SELECT seqinbox_declare('{"sequences": [{"name": "S\"1'' $.sequences[0] \\ ", "retentionPeriod": "1 day", "messages": [
    {"type": "Name"}, {"type": "name"}, {"type": "NAME"},
    {"type": "dotted.name", "subType": "x.y"}, {"type": "dotted.name", "subType": "x"}, {"type": "dotted"},
    {"type": " blank "}, {"type": "\"quoted\" ''name''"}, {"type": "<b>&amp;</b>"}, {"type": "null"}, {"type": "%s {0} $1"},
    {"type": "end", "releaseCondition": {"and": [{"predecessor": "name"}, {"predecessor": "\"quoted\" ''name''"},
                                                 {"predecessor": "dotted.name.x.y"}]}}]}]}');
SELECT sequence, message_type, sub_type, release_condition FROM declared WHERE sequence LIKE 'S"%';

-- as long as can be: 512 bytes
SELECT seqinbox_declare(jsonb_build_object('sequences', jsonb_build_array(jsonb_build_object(
           'name', repeat('n', 512), 'retentionPeriod', '1 day',
           'messages', jsonb_build_array(
               jsonb_build_object('type', repeat('t', 512)),
               jsonb_build_object('type', repeat('u', 500), 'subType', repeat('s', 11),
                                  'releaseCondition', jsonb_build_object('predecessor', repeat('t', 512))))))));
SELECT octet_length(sequence) AS sequence, octet_length(message_type) AS type, octet_length(sub_type) AS sub_type
  FROM declared WHERE sequence LIKE 'nnn%';

-- 300 types, each after the one before; and 200 sequences in a document
SELECT seqinbox_declare(jsonb_build_object('sequences', jsonb_build_array(jsonb_build_object(
           'name', 'Many types', 'retentionPeriod', '1 day',
           'messages', jsonb_agg(
               CASE WHEN n = 300 THEN jsonb_build_object('type', 'T300')
                    ELSE jsonb_build_object('type', 'T' || n, 'releaseCondition', jsonb_build_object('predecessor', 'T' || n + 1))
               END ORDER BY n)))))
  FROM generate_series(1, 300) AS n;
SELECT count(*), min(place), max(place), count(release_condition) AS conditions FROM declared WHERE sequence = 'Many types';
SELECT outcome, count(*)
  FROM generate_series(1, 300) AS n, seqinbox_receive('T' || n, 'id', 'context', NULL)
 GROUP BY outcome ORDER BY outcome;
SELECT seqinbox_declare(jsonb_build_object('sequences', jsonb_agg(jsonb_build_object(
           'name', 'Many ' || n, 'retentionPeriod', '1 day',
           'messages', jsonb_build_array(jsonb_build_object('type', 'M' || n))))))
  FROM generate_series(1, 200) AS n;
SELECT count(*) FROM sequence_declaration WHERE name ~ '^Many [0-9]+$';

-- conditions nested 500 deep: read, stored, evaluated, shown
CREATE FUNCTION nested(depth int) RETURNS text LANGUAGE sql AS $$
SELECT string_agg(CASE WHEN n % 2 = 0 THEN '{"and": [{"predecessor": "first"}, '
                       ELSE '{"or": [{"predecessor": "second"}, ' END, '' ORDER BY n)
       || '{"predecessor": "third"}' || repeat(']}', depth)
  FROM generate_series(1, depth) AS n
$$;
CREATE FUNCTION declare_nested(depth int) RETURNS void LANGUAGE sql AS $$
SELECT seqinbox_declare(format('{"sequences": [{"name": "Deep", "retentionPeriod": "1 day", "messages": [
    {"type": "first"}, {"type": "second"}, {"type": "third"}, {"type": "deep", "releaseCondition": %s}]}]}',
    nested(depth))::jsonb)
$$;
SELECT declare_nested(500);
SELECT release_condition = nested(500)::jsonb AS as_given FROM declared WHERE message_type = 'deep';
SELECT process, outcome, sequence_instance_id AS instance FROM seqinbox_receive('deep', 'id', 'context', NULL) \gset
SELECT :'outcome' AS deep, seqinbox_is_releasable('deep', :instance);
SELECT predecessor FROM seqinbox_waiting() WHERE message_type = 'deep';
SELECT count(*) FROM regexp_split_to_table(seqinbox_diagram('Deep', 'context'), '\n') AS line WHERE line LIKE '%((%';
SELECT outcome FROM seqinbox_receive('second', 'id', 'context', NULL);
SELECT message_type FROM seqinbox_next(:instance);
-- 500 deep with a fault at the bottom
DO $$
DECLARE
    faulty text := format('{"sequences": [{"name": "Deep", "retentionPeriod": "1 day", "messages": [
        {"type": "first"}, {"type": "second"}, {"type": "deep", "releaseCondition": %s}]}]}',
        replace(nested(500), '"predecessor": "third"', '"predecesor": "first"'));
    message text;
BEGIN
    PERFORM seqinbox_declare(faulty::jsonb);
EXCEPTION WHEN invalid_parameter_value THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT;
    RAISE NOTICE '% ... %, % steps', left(message, 80), right(message, 30),
        (SELECT count(*) FROM regexp_matches(message, '\.(and|or)\[1\]', 'g'));
END
$$;
-- 100,000 deep: more than the server's own stack allows, and no crash
\set VERBOSITY sqlstate
SELECT declare_nested(100000);
\set VERBOSITY default
SELECT count(*) FROM declared WHERE sequence = 'Deep';

-- a type that messages wait in cannot be removed
SELECT outcome FROM seqinbox_receive('OrderShipped', 'waits-1', 'order-1', 'value');
SELECT seqinbox_declare('{"sequences": [{"name": "OrderSequence", "retentionPeriod": "24h",
                                         "messages": [{"type": "OrderCreated"}, {"type": "OrderPrepared"}]}]}');
\echo :SQLSTATE
SELECT outcome FROM seqinbox_receive('OrderShipped', 'waits-2', 'order-1', 'value');
SELECT outcome FROM seqinbox_receive('OrderShipped', 'waits-3', 'order-2', 'value');
SELECT seqinbox_declare('{"sequences": [{"name": "OrderSequence", "retentionPeriod": "24h",
                                         "messages": [{"type": "OrderCreated"}, {"type": "OrderPrepared"}]}]}');
\echo :SQLSTATE
-- nor be moved, nor be replaced by its sub-types
SELECT seqinbox_declare('{"sequences": [
    {"name": "OrderSequence", "retentionPeriod": "24h", "messages": [{"type": "OrderCreated"}]},
    {"name": "Elsewhere", "retentionPeriod": "24h", "messages": [{"type": "OrderShipped"}]}]}');
\echo :SQLSTATE
SELECT seqinbox_declare('{"sequences": [{"name": "OrderSequence", "retentionPeriod": "24h",
                                         "messages": [{"type": "OrderShipped", "subType": "x"}]}]}');
\echo :SQLSTATE
SELECT message_type FROM declared WHERE sequence IN ('OrderSequence', 'Elsewhere');
-- other types can, and its condition may change
SELECT seqinbox_declare('{"sequences": [{"name": "OrderSequence", "retentionPeriod": "24h", "messages": [
    {"type": "OrderCreated"}, {"type": "OrderShipped", "releaseCondition": {"predecessor": "OrderCreated"}}]}]}');
SELECT outcome FROM seqinbox_receive('OrderCreated', 'created', 'order-1', 'value');
SELECT outcome FROM seqinbox_receive('OrderCreated', 'created-2', 'order-2', 'value');
SELECT idempotence_id FROM sequence_instance i, LATERAL seqinbox_next(i.id)
 WHERE i.name = 'OrderSequence' ORDER BY idempotence_id;
SELECT idempotence_id FROM sequence_instance i, LATERAL seqinbox_next(i.id) WHERE i.context_id = 'order-1';
-- what was processed or failed keeps no type
SELECT seqinbox_record_failure('OrderShipped', 'failed', 'order-2', 'error') > 0 AS failed;
SELECT seqinbox_declare('{"sequences": [{"name": "OrderSequence", "retentionPeriod": "24h",
                                         "messages": [{"type": "OrderCreated"}]}]}');
SELECT message_type FROM declared WHERE sequence = 'OrderSequence';

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA declare CASCADE;
