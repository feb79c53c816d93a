-- seqinbox_receive_batch: as seqinbox_receive, for several deliveries in one
-- call.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('receive_batch');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = receive_batch;
SELECT seqinbox_declare('{"sequences": [
    {"name": "S", "retentionPeriod": "1 day", "messages": [
        {"type": "A"},
        {"type": "B", "releaseCondition": {"predecessor": "A"}},
        {"type": "C", "releaseCondition": {"predecessor": "B"}}]},
    {"name": "T", "retentionPeriod": "1 day", "messages": [{"type": "X"}, {"type": "Y"}]}]}');
CREATE VIEW record AS
SELECT name, context_id AS context, i.state AS instance, release_due_at IS NOT NULL AS due,
       m.id, m.idempotence_id AS message, m.state, attempts,
       EXISTS (SELECT FROM sequential_inbox_idempotence c
                WHERE (c.message_type, c.idempotence_id) = (m.message_type, m.idempotence_id)) AS claimed
  FROM sequenced_message m
  JOIN sequence_instance i ON i.id = m.sequence_instance_id
 ORDER BY m.id;
CREATE VIEW payload AS
SELECT m.idempotence_id AS message, topic, cluster_name AS cluster, message_value AS value, message_key AS key,
       (SELECT string_agg(header_name || '=' || coalesce(convert_from(header_value, 'UTF8'), 'NULL'), ' ' ORDER BY h.id)
          FROM message_header h WHERE h.buffered_message_id = b.id) AS headers,
       right(m.sequenced_message_id::text, 12) AS uuid, trace_id, sampled
  FROM buffered_message b JOIN sequenced_message m ON m.id = b.sequenced_message_id
 ORDER BY m.id;
CREATE FUNCTION count_rows() RETURNS text LANGUAGE sql AS $$
SELECT concat_ws(' ', (SELECT count(*) FROM sequence_instance WHERE name IN ('S', 'T')),
                 (SELECT count(*) FROM sequenced_message),
                 (SELECT count(*) FROM sequential_inbox_idempotence), (SELECT count(*) FROM buffered_message),
                 (SELECT count(*) FROM message_header))
$$;

-- decided in the order of the array: B before A waits, B after A does not
SELECT ordinal, process, outcome, id, attempts, release_due
  FROM seqinbox_receive_batch('{B,A,B,C,X}', '{b-1,a-1,b-2,c-1,x-1}', '{one,one,one,one,one}', '{1,2,3,4,5}');
SELECT * FROM record;
-- several contexts and sequences; an instance that is complete closes
CREATE TABLE several AS
SELECT * FROM seqinbox_receive_batch('{Y,C,A,X,A,B,C}', '{y-3,c-3,a-3,x-3,a-4,b-4,c-4}',
                                     '{three,three,two,two,four,four,four}', '{1,2,3,4,5,6,7}');
SELECT ordinal, process, outcome, s.id, name, context_id, attempts, release_due
  FROM several s JOIN sequence_instance i ON i.id = s.sequence_instance_id ORDER BY ordinal;
SELECT * FROM record WHERE context <> 'one';

-- duplicates: of what was there, and inside the batch, where the first counts
SELECT ordinal, process, outcome, id, attempts, release_due
  FROM seqinbox_receive_batch('{B,A,A,A,C,C}', '{b-1,a-1,a-6,a-6,c-6,c-6}', '{one,one,six,elsewhere,six,six}',
                              '{1,2,3,4,5,6}');
SELECT message, context, state FROM record WHERE message IN ('a-6', 'c-6');
SELECT message, value FROM payload WHERE message = 'c-6';
-- the same ID of different types is no duplicate
SELECT ordinal, outcome FROM seqinbox_receive_batch('{A,B,X,Y}', '{same,same,same,same}', '{one,one,one,one}', '{1,2,3,4}');
-- of what the same transaction took in, and of a claim without a record
BEGIN;
SELECT outcome FROM seqinbox_receive('A', 'a-7', 'seven', 'value');
SELECT seqinbox_claim('A', 'claimed');
SELECT ordinal, process, outcome, id IS NOT NULL AS recorded
  FROM seqinbox_receive_batch('{A,A}', '{a-7,claimed}', '{seven,seven}', '{1,2}');
ROLLBACK;
SELECT ordinal, outcome FROM seqinbox_receive_batch('{A,A}', '{a-7,claimed}', '{seven,seven}', '{1,2}');

-- messages that failed are taken in again
SELECT seqinbox_record_failure('A', 'a-8', 'eight', 'error') > 0 AS failed,
       seqinbox_record_failure('C', 'c-8', 'eight', 'error', 'old') > 0 AS failed,
       seqinbox_record_failure('A', 'a-8', 'eight', 'error') > 0 AS again;
SELECT ordinal, process, outcome, attempts, release_due
  FROM seqinbox_receive_batch('{C,A}', '{c-8,a-8}', '{eight,eight}', '{new,value}');
SELECT message, value FROM payload WHERE message = 'c-8';

-- without a context ID: not sequenced, also when it comes twice
SELECT count_rows() AS before \gset
SELECT ordinal, process, outcome, id, sequence_instance_id, attempts, release_due
  FROM seqinbox_receive_batch('{C,C,A}', '{c-9,c-9,a-1}', '{NULL,NULL,NULL}', '{1,2,3}');
SELECT count_rows() = :'before' AS nothing_stored;
SELECT ordinal, outcome, release_due
  FROM seqinbox_receive_batch('{C,C,B,C}', '{c-9,c-9,b-9,c-9}', '{NULL,nine,NULL,nine}', '{1,2,3,4}');

-- the payload of each: value, key, headers by their number, topic, cluster,
-- uuid, trace
SELECT ordinal, outcome
  FROM seqinbox_receive_batch('{C,C,C,C,C}', '{p-1,p-2,p-3,p-4,p-5}', '{ten,ten,ten,ten,ten}', '{value,NULL,"",\\x00,last}',
                              '{key,"",NULL,k,NULL}', '{2,0,NULL,3,1}', '{a,b,c,c,a,d}', '{1,NULL,2,3,"",4}',
                              '{orders,NULL,NULL,orders,""}', '{main,other,NULL,NULL,NULL}',
                              '{00112233-4455-6677-8899-aabbccddee01,NULL,NULL,00112233-4455-6677-8899-aabbccddee04,NULL}',
                              ARRAY['00-00000000000000000000000000000001-0000000000000001-01', NULL, 'nonsense',
                                    '00-00000000000000000000000000000004-0000000000000001-00', '']);
SELECT message, topic, cluster, value, key, headers,
       CASE WHEN message IN ('p-1', 'p-4') THEN uuid ELSE (uuid IS NOT NULL)::text END AS uuid, trace_id, sampled
  FROM payload WHERE message LIKE 'p-%';
-- and as next gives it back
SELECT outcome FROM seqinbox_receive('B', 'b-10', 'ten', NULL);
SELECT outcome, sequence_instance_id AS instance FROM seqinbox_receive('A', 'a-10', 'ten', NULL) \gset
SELECT idempotence_id, message_value, message_key, header_names, header_values, topic, cluster_name
  FROM generate_series(1, 10) AS turn, seqinbox_next(:instance + 0 * turn);
-- optional arrays may be NULL or of NULLs; without header_counts there are no
-- headers
SELECT ordinal, outcome
  FROM seqinbox_receive_batch('{C,C}', '{o-1,o-2}', '{eleven,eleven}', '{1,2}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT ordinal, outcome
  FROM seqinbox_receive_batch('{C,C}', '{o-3,o-4}', '{eleven,eleven}', '{NULL,NULL}', '{NULL,NULL}', '{0,0}', '{}', '{}',
                              '{NULL,NULL}', '{NULL,NULL}', '{NULL,NULL}', '{NULL,NULL}');
SELECT ordinal, outcome
  FROM seqinbox_receive_batch('{C,C}', '{o-5,o-6}', '{eleven,eleven}', '{1,2}', header_names => '{}', header_values => NULL);
SELECT message, topic, cluster, value, key, headers, trace_id FROM payload WHERE message LIKE 'o-%';

-- nothing at all; arrays that do not begin at 1
SELECT * FROM seqinbox_receive_batch('{}', '{}', '{}', '{}');
SELECT * FROM seqinbox_receive_batch('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}');
SELECT ordinal, outcome FROM seqinbox_receive_batch('[5:6]={A,X}', '[0:1]={a-12,x-12}', '{twelve,twelve}', '[-1:0]={1,2}');

-- one bad element, and nothing is left of the others
SELECT count_rows() AS before \gset
SELECT * FROM seqinbox_receive_batch('{A,Unknown,B}', '{z-1,z-2,z-3}', '{z,z,z}', '{1,2,3}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,NULL,B}', '{z-1,z-2,z-3}', '{z,z,z}', '{1,2,3}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,"",B}', '{z-1,z-2,z-3}', '{z,z,z}', '{1,2,3}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch(ARRAY['A', repeat('x', 513)], '{z-1,z-2}', '{z,z}', '{1,2}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A,B}', '{z-1,NULL,z-3}', '{z,z,z}', '{1,2,3}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A,B}', '{z-1,"",z-3}', '{z,z,z}', '{1,2,3}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A}', ARRAY['z-1', repeat('x', 2049)], '{z,z}', '{1,2}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A,B}', '{z-1,z-2,z-3}', '{z,"",z}', '{1,2,3}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A}', '{z-1,z-2}', ARRAY['z', repeat('x', 2049)], '{1,2}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A}', '{z-1,z-2}', '{z,z}', '{1,2}', NULL, '{1,1}', '{a,NULL}', '{1,2}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A}', '{z-1,z-2}', '{z,z}', '{1,2}', NULL, '{3,-1}', '{a,b}', '{1,2}');
\echo :SQLSTATE
-- a type of which nothing is to be sequenced has to be declared, too
SELECT * FROM seqinbox_receive_batch('{A,Unknown}', '{z-1,z-2}', '{z,NULL}', '{1,2}');
\echo :SQLSTATE
-- an error after a part of the work was done
CREATE UNIQUE INDEX once ON sequenced_message (idempotence_id) WHERE idempotence_id = 'z-9';
SELECT ordinal, outcome FROM seqinbox_receive_batch('{A,B,B}', '{z-9,z-9,z-8}', '{z,z,z}', '{1,2,3}');
\echo :SQLSTATE
DROP INDEX once;
SELECT count_rows() = :'before' AS nothing_stored;

-- arrays that do not fit together
SELECT * FROM seqinbox_receive_batch('{A,A}', '{z-1}', '{z,z}', '{1,2}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A}', '{z-1,z-2}', '{z}', '{1,2}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A}', '{z-1,z-2}', '{z,z}', '{1,2,3}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A}', '{z-1,z-2}', '{z,z}', '{1,2}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A}', '{z-1,z-2}', '{z,z}', '{}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A}', '{z-1,z-2}', '{z,z}', '{1,2}', '{k}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A}', '{z-1,z-2}', '{z,z}', '{1,2}', NULL, '{1}', '{a}', '{1}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A}', '{z-1,z-2}', '{z,z}', '{1,2}', NULL, '{1,1}', '{a}', '{1,2}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A}', '{z-1,z-2}', '{z,z}', '{1,2}', NULL, '{1,1}', '{a,b}', '{1,2,3}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A}', '{z-1,z-2}', '{z,z}', '{1,2}', NULL, NULL, '{a,b}', '{1,2}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A}', '{z-1,z-2}', '{z,z}', '{1,2}', NULL, '{1,1}', NULL, '{1,2}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A}', '{z-1,z-2}', '{z,z}', '{1,2}', NULL, '{1,1}', '{a,b}', NULL);
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A}', '{z-1,z-2}', '{z,z}', '{1,2}', NULL, '{2147483647,2147483647}', '{a,b}', '{1,2}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A}', '{z-1,z-2}', '{z,z}', '{1,2}', topics => '{t,t,t}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A}', '{z-1,z-2}', '{z,z}', '{1,2}', cluster_names => '{}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A}', '{z-1,z-2}', '{z,z}', '{1,2}', message_uuids => '{NULL}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A,A}', '{z-1,z-2}', '{z,z}', '{1,2}', traceparents => '{NULL,NULL,NULL}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{{A,A}}', '{{z-1,z-2}}', '{{z,z}}', '{{1,2}}');
\echo :SQLSTATE
-- arrays that are needed
SELECT * FROM seqinbox_receive_batch(NULL, '{z-1}', '{z}', '{1}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A}', NULL, '{z}', '{1}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A}', '{z-1}', NULL, '{1}');
\echo :SQLSTATE
SELECT * FROM seqinbox_receive_batch('{A}', '{z-1}', '{z}', NULL);
\echo :SQLSTATE
SELECT count_rows() = :'before' AS nothing_stored;
\set VERBOSITY sqlstate
BEGIN READ ONLY;
SELECT * FROM seqinbox_receive_batch('{A}', '{z-1}', '{z}', '{1}');
ROLLBACK;
BEGIN READ ONLY;
SELECT * FROM seqinbox_receive_batch('{A,A}', '{a-1,u-1}', '{one,NULL}', '{1,2}');
ROLLBACK;
\set VERBOSITY default

-- 1,000 messages: 50 contexts with 5 As, Bs and Cs each, the Bs twice, shuffled
CREATE TABLE sent AS
SELECT row_number() OVER (ORDER BY md5(type || message || copy) COLLATE "C") AS n,
       type, message, 'context ' || message % 50 AS context
  FROM unnest('{A,B,C}'::text[]) AS type, generate_series(1, 250) AS message, generate_series(1, 2) AS copy
 WHERE copy = 1 OR type = 'B';
CREATE TABLE handled (n int GENERATED ALWAYS AS IDENTITY, type text, message text, context text);
SELECT count(*) FROM sent;
CREATE TABLE answer AS
SELECT b.* FROM (SELECT array_agg(type ORDER BY n) AS types, array_agg('m-' || message ORDER BY n) AS messages,
                        array_agg(context ORDER BY n) AS contexts, array_agg(convert_to(n::text, 'UTF8') ORDER BY n) AS values
                   FROM sent) AS s,
       LATERAL seqinbox_receive_batch(types, messages, contexts, values) AS b;
SELECT type, outcome, count(*) FROM answer JOIN sent ON ordinal = n GROUP BY type, outcome ORDER BY type, outcome;
SELECT count(*) AS ordinals, count(DISTINCT ordinal), min(ordinal), max(ordinal),
       count(DISTINCT sequence_instance_id) AS instances
  FROM answer;
-- the first of two is the one that is taken in
SELECT count(*) FROM answer a JOIN sent s ON s.n = a.ordinal
 WHERE (outcome = 'DUPLICATE') <> EXISTS (SELECT FROM sent t WHERE (t.type, t.message) = (s.type, s.message) AND t.n < s.n);
-- the rest is drained: each message is handled once, after its predecessors
INSERT INTO handled (type, message, context)
SELECT type, 'm-' || message, context FROM answer JOIN sent ON ordinal = n WHERE process ORDER BY n;
INSERT INTO handled (type, message, context)
SELECT n.message_type, n.idempotence_id, n.context_id
  FROM (SELECT DISTINCT sequence_instance_id AS instance FROM answer) AS a, generate_series(1, 16) AS turn,
       LATERAL seqinbox_next(instance + 0 * turn) AS n;
SELECT count(*), count(DISTINCT (type, message)) FROM handled;
SELECT count(*) AS too_early FROM handled AS h
 WHERE type <> 'A'
   AND NOT EXISTS (SELECT FROM handled AS p
                    WHERE p.context = h.context AND p.type = CASE h.type WHEN 'B' THEN 'A' ELSE 'B' END AND p.n < h.n);
SELECT instance, state, count(*) FROM record WHERE context LIKE 'context %' GROUP BY instance, state;
SELECT count(*) FROM seqinbox_waiting() WHERE context_id LIKE 'context %';
-- all of it once more
SELECT outcome, count(*)
  FROM (SELECT array_agg(type ORDER BY n) AS types, array_agg('m-' || message ORDER BY n) AS messages,
               array_agg(context ORDER BY n) AS contexts, array_agg(NULL::bytea) AS values
          FROM sent) AS s,
       LATERAL seqinbox_receive_batch(types, messages, contexts, values)
 GROUP BY outcome;

SET search_path = receive_batch_missing;
SELECT * FROM seqinbox_receive_batch('{A}', '{z-1}', '{z}', '{1}');
\echo :SQLSTATE
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA receive_batch CASCADE;
