-- Sequences whose names, IDs and payloads have letters of more than one byte.
-- (In a database of another encoding than UTF8 there is nothing to test; that
-- output is expected/sequencing_multibyte_1.out.)
SELECT getdatabaseencoding() <> 'UTF8' AS other_encoding \gset
\if :other_encoding
\quit
\endif
SET client_encoding = 'UTF8';
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('sequencing_multibyte');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = sequencing_multibyte;

SELECT seqinbox_declare('{"sequences": [{"name": "Aufträge «Süd»", "retentionPeriod": "1 day", "messages": [
    {"type": "Größe geprüft", "subType": "Öl"},
    {"type": "Übergabe", "releaseCondition": {"predecessor": "Größe geprüft.Öl"}},
    {"type": "発送", "releaseCondition": {"and": [{"predecessor": "Übergabe"}, {"predecessor": "Größe geprüft.Öl"}]}},
    {"type": "übergabe"}, {"type": "𝄞 [Ü; \"ä\" #ß]"}]}]}');
SELECT message_type, sub_type, release_condition FROM message_type_declaration ORDER BY place;

-- letters that only look the same are others
SELECT outcome FROM seqinbox_receive('übergabe', 'Ä-1', 'Kunde Ø', NULL);
SELECT outcome FROM seqinbox_receive(U&'U\0308bergabe', 'Ä-1', 'Kunde Ø', NULL);
SELECT outcome, sequence_instance_id AS instance
  FROM seqinbox_receive('発送', 'Ä-1', 'Kunde Ø', convert_to('Straße', 'UTF8'), NULL,
                        '{größe}', ARRAY[convert_to('groß', 'UTF8')], 'aufträge', 'süd') \gset
SELECT outcome FROM seqinbox_receive('発送', 'ä-1', 'Kunde ø', NULL);
SELECT outcome FROM seqinbox_receive('Übergabe', 'Ä-1', 'Kunde Ø', NULL);
SELECT seqinbox_record_failure('Größe geprüft.Öl', 'Ä-1', 'Kunde Ø', 'Störung: «kein Öl»') > 0 AS failed;
SELECT sequence_name, context_id, message_type, idempotence_id, predecessor, predecessor_state, predecessor_error
  FROM seqinbox_waiting();
\pset format unaligned
\pset tuples_only
SELECT seqinbox_diagram('Aufträge «Süd»', 'Kunde Ø');
\pset format aligned
\pset tuples_only off
SELECT outcome FROM seqinbox_receive('Größe geprüft.Öl', 'Ä-1', 'Kunde Ø', NULL);
SELECT message_type, idempotence_id, context_id, convert_from(message_value, 'UTF8') AS value, header_names, topic, cluster_name
  FROM generate_series(1, 5) AS turn, seqinbox_next(:instance + 0 * turn);
SELECT ordinal, outcome
  FROM seqinbox_receive_batch('{Übergabe,Größe geprüft.Öl,Übergabe,Übergabe}', '{ö,ö,ö,Ö}', '{ß,ß,ß,ß}', '{1,2,3,4}');

-- limits count bytes
SELECT outcome FROM seqinbox_receive('Übergabe', repeat('ß', 1024), repeat('𝄞', 512), NULL);
SELECT outcome FROM seqinbox_receive('Übergabe', repeat('ß', 1025), 'Kunde Ø', NULL);
\echo :SQLSTATE
SELECT seqinbox_declare(jsonb_build_object('sequences', jsonb_build_array(jsonb_build_object(
           'name', repeat('ü', 256), 'retentionPeriod', '1 day',
           'messages', jsonb_build_array(jsonb_build_object('type', repeat('ß', 254), 'subType', 'xÖ'))))));
SELECT octet_length(message_type) AS bytes FROM message_type_declaration WHERE message_type LIKE 'ßßß%';

-- in messages
SELECT seqinbox_declare('{"sequences": [{"name": "Rückläufe", "retentionPeriod": "1 day", "messages": [
    {"type": "Übergabe"}, {"type": "Ü", "releaseCondition": {"predecessor": "Ä"}}]}]}');
\echo :SQLSTATE
SELECT seqinbox_declare('{"sequences": [
    {"name": "Rückläufe", "retentionPeriod": "1 day", "messages": [{"type": "Übergabe"}]}]}');
\echo :SQLSTATE
SELECT seqinbox_declare('{"sequences": [
    {"name": "Rückläufe", "retentionPeriod": "1 day", "messages": [{"type": "A", "größe": 1}]}]}');
\echo :SQLSTATE
SELECT outcome FROM seqinbox_receive('Rücklauf', 'Ä-1', 'Kunde Ø', NULL);
\echo :SQLSTATE
SELECT seqinbox_diagram('Rückläufe');
\echo :SQLSTATE
SELECT seqinbox_diagram('Aufträge «Süd»', 'Kunde Ö');
\echo :SQLSTATE

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA sequencing_multibyte CASCADE;
