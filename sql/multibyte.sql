-- Names, IDs and payloads with letters of more than one byte. Limits count
-- bytes. (In a database of another encoding than UTF8 there is nothing to
-- test; that output is expected/multibyte_1.out.)
SELECT getdatabaseencoding() <> 'UTF8' AS other_encoding \gset
\if :other_encoding
\quit
\endif
SET client_encoding = 'UTF8';
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
RESET client_min_messages;
\set SHOW_CONTEXT never

-- the schema
SELECT seqinbox_create_inbox('Büro "Süd"');
SELECT seqinbox_create_inbox('Büro "Süd"');
SET search_path = "Büro ""Süd""";
SELECT seqinbox_create_inbox();
-- a name as long as a name can be
SELECT repeat('ü', 31) || 'x' AS longest \gset
SET client_min_messages = warning;
SELECT octet_length(:'longest') AS bytes, seqinbox_create_inbox(:'longest');
RESET client_min_messages;
SET search_path = :"longest";
SELECT seqinbox_create_inbox();
SELECT seqinbox_claim('Übergabe', 'Ä-1'), seqinbox_claim('Übergabe', 'Ä-1') AS again,
       seqinbox_claim('Übergabe', 'ä-1') AS lower_case,
       seqinbox_claim(U&'U\0308bergabe', 'Ä-1') AS decomposed;
SELECT message_type, idempotence_id FROM sequential_inbox_idempotence ORDER BY 1, 2;

-- 512 and 2048 bytes, of two and of four bytes a letter
SELECT seqinbox_claim(repeat('ü', 256), repeat('ß', 1024)), seqinbox_claim(repeat('ü', 256), repeat('ß', 1024)) AS again,
       seqinbox_try_claim(repeat('𝄞', 128), repeat('𝄞', 512)), seqinbox_try_claim(repeat('𝄞', 128), repeat('𝄞', 512)) AS again;
SELECT seqinbox_claim(repeat('ü', 256) || 'x', 'id');
\echo :SQLSTATE
SELECT seqinbox_claim('A', repeat('𝄞', 512) || 'x');
\echo :SQLSTATE
SELECT seqinbox_claim('A', repeat('ß', 1025));
\echo :SQLSTATE
SELECT seqinbox_open_instance('Aufträge', 'Größe ' || repeat('ö', 1020), '1 day')
     = seqinbox_open_instance('Aufträge', 'Größe ' || repeat('ö', 1020), '1 day') AS same;

-- the record
SELECT seqinbox_open_instance('Aufträge', 'Kunde Ø', '1 day') AS instance \gset
SELECT seqinbox_store('Übergabe', 'Ä-1', :instance, 'WAITING', convert_to('Straße', 'UTF8'), NULL,
                      '{größe,größe}', ARRAY[convert_to('groß', 'UTF8'), NULL], 'aufträge', 'süd',
                      error => 'Störung: «kein Bestand»') AS id;
SELECT m.message_type, m.idempotence_id, m.topic, m.cluster_name, m.last_error,
       convert_from(b.message_value, 'UTF8') AS value
  FROM sequenced_message m JOIN buffered_message b ON b.sequenced_message_id = m.id;
SELECT header_name, convert_from(header_value, 'UTF8') AS header_value FROM message_header ORDER BY id;
SELECT id, state FROM seqinbox_lookup('Übergabe', 'Ä-1');
SELECT count(*) FROM seqinbox_lookup('Übergabe', 'ä-1');
SELECT seqinbox_fail_and_release(1, 'Störung');

-- in messages
SELECT seqinbox_store('Übergabe', 'Ä-2', :instance, 'GEPRÜFT');
\echo :SQLSTATE
SELECT seqinbox_open_instance('Rückläufe', 'Kunde Ø');
\echo :SQLSTATE
SELECT seqinbox_record_failure('Rücklauf', 'Ä-1', 'Kunde Ø', 'Störung');
\echo :SQLSTATE

-- a traceparent of the right number of bytes, or of letters, and no other
SELECT left(t.value, 55) AS value, octet_length(t.value) AS bytes, length(t.value) AS letters,
       seqinbox_store('Spur', 'Ä-3', :instance, 'PROCESSED', traceparent => t.value) > 0 AS stored,
       (SELECT count(*) FROM sequenced_message WHERE trace_id_string IS NOT NULL) AS present
  FROM (VALUES ('00-0af7651916cd43dd8448eb211c80319ü-b7ad6b7169203331-01'),
               ('00-0af7651916cd43dd8448eb211c8031ü-b7ad6b7169203331-01'),
               ('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ü'),
               ('ü-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'),
               ('𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞xxx'),
               (repeat('ü', 500))) AS t (value);

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA "Büro ""Süd""", :"longest" CASCADE;
