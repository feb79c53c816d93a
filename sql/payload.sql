-- What a message that waits brings, seqinbox_next gives back exactly.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('payload');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = payload;
SELECT seqinbox_declare('{"sequences": [
    {"name": "S", "retentionPeriod": "1 day", "messages": [
        {"type": "First"}, {"type": "Waits", "releaseCondition": {"predecessor": "First"}}]}]}');

-- a sent message is one row; so is a message that next gives back
CREATE TABLE sent (
    place int GENERATED ALWAYS AS IDENTITY, idempotence_id text,
    message_value bytea, message_key bytea, header_names text[], header_values bytea[],
    topic text, cluster_name text, message_uuid uuid, traceparent text);
CREATE TABLE got (LIKE sent INCLUDING IDENTITY);
CREATE FUNCTION send_all(context text) RETURNS void LANGUAGE sql AS $$
SELECT seqinbox_receive('Waits', idempotence_id, context, message_value, message_key, header_names, header_values,
                        topic, cluster_name, message_uuid, traceparent)
  FROM (SELECT * FROM sent ORDER BY place) AS sent
$$;
-- (a call that did not depend on the turn would be made only once)
CREATE FUNCTION take_all(instance bigint) RETURNS bigint LANGUAGE sql AS $$
INSERT INTO got (idempotence_id, message_value, message_key, header_names, header_values,
                 topic, cluster_name, message_uuid, traceparent)
SELECT n.idempotence_id, n.message_value, n.message_key, n.header_names, n.header_values,
       n.topic, n.cluster_name, n.message_uuid, n.traceparent
  FROM generate_series(1, 100) AS turn, seqinbox_next(instance + 0 * turn) AS n;
SELECT count(*) FROM got
$$;
CREATE FUNCTION begins(value bytea) RETURNS text LANGUAGE sql AS $$
SELECT CASE WHEN value IS NULL THEN 'NULL' ELSE length(value) || ' bytes ' || left(encode(value, 'hex'), 16) END
$$;

INSERT INTO sent (idempotence_id, message_value, message_key) VALUES
    ('tombstone', NULL, NULL),
    ('empty', '', NULL),
    ('tombstone with key', NULL, 'key'),
    ('empty key', 'value', ''),
    ('both empty', '', ''),
    ('text', 'value', 'key'),
    ('all bytes', (SELECT string_agg(decode(lpad(to_hex(n), 2, '0'), 'hex'), '' ORDER BY n) FROM generate_series(0, 255) AS n),
     '\x00'),
    ('10 MB', (SELECT convert_to(string_agg(md5(n::text), '' ORDER BY n), 'UTF8') FROM generate_series(1, 327680) AS n),
     NULL),
    ('10 MB that compress', decode(repeat('00', 10 * 1024 * 1024), 'hex'), 'key'),
    ('big key', 'value',
     (SELECT convert_to(string_agg(md5(n::text), '' ORDER BY n), 'UTF8') FROM generate_series(1, 10000) AS n));
INSERT INTO sent (idempotence_id, message_value, header_names, header_values) VALUES
    ('a header', 'value', '{name}', '{value}'),
    ('duplicate names', 'value', '{b,a,b,a}', '{4,3,2,1}'),
    ('same headers', 'value', '{a,a,a}', '{v,v,v}'),
    ('NULL header value', 'value', '{a,b,c}', '{NULL,"",NULL}'),
    ('headers of a tombstone', NULL, '{a}', '{v}'),
    ('names', 'value', ARRAY['', ' ', 'NULL', '{a,b}', '"', '\', repeat('x', 10000)], '{1,2,3,4,5,6,7}'),
    ('many headers', 'value', (SELECT array_agg('name ' || n % 7 ORDER BY n) FROM generate_series(1, 500) AS n),
     (SELECT array_agg(convert_to(n::text, 'UTF8') ORDER BY n) FROM generate_series(1, 500) AS n)),
    ('a big header', 'value', '{a,b}', ARRAY[decode(repeat('ff', 1000000), 'hex'), '\x01']);
INSERT INTO sent (idempotence_id, message_value, topic, cluster_name, message_uuid, traceparent) VALUES
    ('topic', 'value', 'orders', NULL, NULL, NULL),
    ('cluster', 'value', NULL, 'main', NULL, NULL),
    ('uuid', 'value', NULL, NULL, '00112233-4455-6677-8899-aabbccddeeff', NULL),
    ('trace', 'value', 'orders', 'main', 'ffffffff-ffff-ffff-ffff-ffffffffffff',
     '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'),
    ('not sampled', 'value', NULL, NULL, NULL, '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00'),
    ('trace of 64 bits', 'value', NULL, NULL, NULL, '00-00000000000000008448eb211c80319c-0000000000000001-01'),
    ('trace of high bits', 'value', NULL, NULL, NULL, '00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-01'),
    ('low half zero', 'value', NULL, NULL, NULL, '00-80000000000000000000000000000000-8000000000000000-00');

SELECT count(*) AS sent FROM sent;
SELECT send_all('context');
SELECT count(*) AS waiting FROM buffered_message;
SELECT outcome, sequence_instance_id AS instance FROM seqinbox_receive('First', 'first', 'context', NULL) \gset
SELECT take_all(:instance) AS got;

-- what came back
SELECT idempotence_id, begins(message_value) AS value, begins(message_key) AS key FROM got
 WHERE header_names IS NULL AND topic IS NULL AND cluster_name IS NULL AND traceparent IS NULL
 ORDER BY place;
SELECT idempotence_id, begins(message_value) AS value,
       CASE WHEN cardinality(header_names) < 5 THEN header_names END AS names,
       CASE WHEN cardinality(header_names) < 5 THEN header_values END AS values,
       cardinality(header_names) AS headers
  FROM got WHERE header_names IS NOT NULL AND idempotence_id <> 'a big header'
 ORDER BY place;
SELECT idempotence_id, topic, cluster_name, traceparent FROM got
 WHERE topic IS NOT NULL OR cluster_name IS NOT NULL OR traceparent IS NOT NULL
 ORDER BY place;
-- and whether it is what was sent: all of it, in the order of arrival
SELECT idempotence_id,
       sent.message_value IS NOT DISTINCT FROM got.message_value AS value,
       md5(sent.message_value) IS NOT DISTINCT FROM md5(got.message_value) AS md5,
       sent.message_key IS NOT DISTINCT FROM got.message_key AS key,
       sent.header_names IS NOT DISTINCT FROM got.header_names AS header_names,
       sent.header_values IS NOT DISTINCT FROM got.header_values AS header_values,
       sent.topic IS NOT DISTINCT FROM got.topic AS topic,
       sent.cluster_name IS NOT DISTINCT FROM got.cluster_name AS cluster,
       got.message_uuid = coalesce(sent.message_uuid, got.message_uuid) AS uuid,
       sent.traceparent IS NOT DISTINCT FROM got.traceparent AS traceparent
  FROM sent FULL JOIN got USING (idempotence_id) ORDER BY sent.place;
SELECT array_agg(idempotence_id ORDER BY place) = (SELECT array_agg(idempotence_id ORDER BY place) FROM sent) AS in_order
  FROM got;

-- nothing of it is kept
SELECT (SELECT count(*) FROM buffered_message) AS buffered, (SELECT count(*) FROM message_header) AS headers,
       (SELECT count(*) FROM sequenced_message WHERE state <> 'PROCESSED') AS unprocessed;

-- what a retry gives back, of messages whose first delivery failed
TRUNCATE got;
DELETE FROM sent WHERE idempotence_id LIKE '10 MB%';
UPDATE sent SET idempotence_id = idempotence_id || ' again';
SELECT count(seqinbox_record_failure('Waits', idempotence_id, 'context', 'error',
                                     message_value, coalesce(message_key, ''), header_names, header_values,
                                     topic, cluster_name, message_uuid, traceparent, '0')) AS failed
  FROM sent;
BEGIN;
SELECT take_all(:instance) AS got;
SELECT (SELECT count(*) FROM buffered_message) AS buffered, (SELECT count(*) FROM message_header) AS headers;
ROLLBACK;
SELECT (SELECT count(*) FROM buffered_message) AS buffered, (SELECT count(*) FROM message_header) AS headers;
SELECT take_all(:instance) AS got;
SELECT count(*) AS as_sent
  FROM sent JOIN got USING (idempotence_id)
 WHERE ROW (sent.message_value, coalesce(sent.message_key, ''), sent.header_names, sent.header_values,
            sent.topic, sent.cluster_name, sent.traceparent)
       IS NOT DISTINCT FROM ROW (got.message_value, got.message_key, got.header_names, got.header_values,
                                 got.topic, got.cluster_name, got.traceparent);

-- a malformed traceparent is as none
SELECT seqinbox_record_failure('Waits', 'malformed', 'context', 'error', 'value',
                               traceparent => '00-xyz', retry_after => '0') > 0 AS failed;
SELECT idempotence_id, traceparent FROM seqinbox_next(:instance);
-- a traceparent of a later version comes back as one of version 00
SELECT seqinbox_record_failure('Waits', 'later', 'context', 'error', 'value',
                               traceparent => 'cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff-more',
                               retry_after => '0') > 0 AS failed;
SELECT idempotence_id, traceparent FROM seqinbox_next(:instance);

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA payload CASCADE;
