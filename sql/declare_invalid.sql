-- seqinbox_declare refuses a faulty document as a whole, and names the place
-- of the fault.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('declare_invalid');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = declare_invalid;

-- each document that is refused is shown with the answer below it
\pset format unaligned
\pset tuples_only
\pset fieldsep '\n    '
CREATE FUNCTION answer(document jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    message text;
    detail text;
BEGIN
    PERFORM seqinbox_declare(document);
    RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
    RETURN concat_ws(E'\n    ', SQLSTATE || ': ' || message, nullif(detail, ''));
END
$$;
-- one sequence, given its messages; and one with the types A, B and C.x, given
-- the condition of its last message D
CREATE FUNCTION with_messages(messages jsonb) RETURNS jsonb LANGUAGE sql AS $$
SELECT jsonb_build_object('sequences', jsonb_build_array(
         jsonb_build_object('name', 'S', 'retentionPeriod', '1 day', 'messages', messages)))
$$;
CREATE FUNCTION with_condition(condition jsonb) RETURNS jsonb LANGUAGE sql AS $$
SELECT with_messages('[{"type": "A"}, {"type": "B"}, {"type": "C", "subType": "x"}]'
                     || jsonb_build_array(jsonb_build_object('type', 'D', 'releaseCondition', condition)))
$$;
-- the two are valid by themselves
BEGIN;
SELECT answer(with_messages('[{"type": "A"}]')), answer(with_condition('{"predecessor": "A"}'));
ROLLBACK;

-- the document
SELECT document, answer(document::jsonb)
  FROM unnest(ARRAY['[]', '[{"sequences": []}]', '"sequences"', '42', 'null', '{}',
                    '{"sequences": null}', '{"sequences": {}}', '{"sequences": []}',
                    '{"sequences": "S"}', '{"sequences": [42]}', '{"sequences": [null]}', '{"sequences": [[]]}',
                    '{"sequence": []}',
                    '{"sequences": [], "version": 1}', '{"Sequences": []}',
                    '{"sequences": [], "name": "S", "retentionPeriod": "1 day"}'])
       WITH ORDINALITY AS d (document, n) ORDER BY n;

-- the sequence: name, retention period, messages
SELECT sequence, answer(jsonb_build_object('sequences', jsonb_build_array(sequence::jsonb)))
  FROM unnest(ARRAY['{"retentionPeriod": "1 day", "messages": [{"type": "A"}]}',
                    '{"name": "", "retentionPeriod": "1 day", "messages": [{"type": "A"}]}',
                    '{"name": 42, "retentionPeriod": "1 day", "messages": [{"type": "A"}]}',
                    '{"name": null, "retentionPeriod": "1 day", "messages": [{"type": "A"}]}',
                    '{"name": ["S"], "retentionPeriod": "1 day", "messages": [{"type": "A"}]}',
                    '{"name": "seqinbox.idempotence", "retentionPeriod": "1 day", "messages": [{"type": "A"}]}',
                    '{"name": "S", "messages": [{"type": "A"}]}',
                    '{"name": "S", "retentionPeriod": null, "messages": [{"type": "A"}]}',
                    '{"name": "S", "retentionPeriod": 86400, "messages": [{"type": "A"}]}',
                    '{"name": "S", "retentionPeriod": "", "messages": [{"type": "A"}]}',
                    '{"name": "S", "retentionPeriod": "soon", "messages": [{"type": "A"}]}',
                    '{"name": "S", "retentionPeriod": "P1X", "messages": [{"type": "A"}]}',
                    '{"name": "S", "retentionPeriod": "0", "messages": [{"type": "A"}]}',
                    '{"name": "S", "retentionPeriod": "PT0S", "messages": [{"type": "A"}]}',
                    '{"name": "S", "retentionPeriod": "-1 hour", "messages": [{"type": "A"}]}',
                    '{"name": "S", "retentionPeriod": "P-1D", "messages": [{"type": "A"}]}',
                    '{"name": "S", "retentionPeriod": "1 month -31 days", "messages": [{"type": "A"}]}',
                    '{"name": "S", "retentionPeriod": "300000 years", "messages": [{"type": "A"}]}',
                    '{"name": "S", "retentionPeriod": "1 day"}',
                    '{"name": "S", "retentionPeriod": "1 day", "messages": null}',
                    '{"name": "S", "retentionPeriod": "1 day", "messages": []}',
                    '{"name": "S", "retentionPeriod": "1 day", "messages": {"type": "A"}}',
                    '{"name": "S", "retentionPeriod": "1 day", "messages": "A"}',
                    '{"name": "S", "retentionPeriod": "1 day", "messages": ["A"]}',
                    '{"name": "S", "retentionPeriod": "1 day", "messages": [[{"type": "A"}]]}',
                    '{"name": "S", "retentionPeriod": "1 day", "messages": [{"type": "A"}], "retention": "1 day"}',
                    '{"name": "S", "retentionPeriod": "1 day", "messages": [{"type": "A"}], "type": "A"}',
                    '{"name": "S", "retentionPeriod": "1 day", "messages": [{"type": "A"}],
                      "sequencingStartTimestamp": "one day"}',
                    '{"name": "S", "retentionPeriod": "1 day", "messages": [{"type": "A"}],
                      "sequencingStartTimestamp": "2030-02-30T00:00:00Z"}',
                    '{"name": "S", "retentionPeriod": "1 day", "messages": [{"type": "A"}],
                      "sequencingStartTimestamp": 1893456000}',
                    '{"name": "S", "retentionPeriod": "1 day", "messages": [{"type": "A"}],
                      "sequencingStartTimestamp": null}'])
       WITH ORDINALITY AS s (sequence, n) ORDER BY n;

-- two sequences: the same name, the same type
SELECT second, answer(jsonb_build_object('sequences',
                '[{"name": "S", "retentionPeriod": "1 day", "messages": [{"type": "A"}, {"type": "B", "subType": "x"}]}]'
                || jsonb_build_array(second::jsonb)))
  FROM unnest(ARRAY['{"name": "S", "retentionPeriod": "1 day", "messages": [{"type": "C"}]}',
                    '{"name": "T", "retentionPeriod": "1 day", "messages": [{"type": "C"}, {"type": "A"}]}',
                    '{"name": "T", "retentionPeriod": "1 day", "messages": [{"type": "B", "subType": "x"}]}',
                    '{"name": "T", "retentionPeriod": "1 day", "messages": [{"type": "B.x"}]}',
                    '{"name": "T", "retentionPeriod": "1 day", "messages": [{"type": "A", "subType": "x"}]}',
                    '{"name": "T", "retentionPeriod": "1 day", "messages": [{"type": "B"}]}',
                    '{"name": "T", "retentionPeriod": "1 day",
                      "messages": [{"type": "C", "releaseCondition": {"predecessor": "A"}}]}'])
       WITH ORDINALITY AS s (second, n) ORDER BY n;

-- the messages
SELECT messages, answer(with_messages(messages::jsonb))
  FROM unnest(ARRAY['[{}]',
                    '[{"type": ""}]',
                    '[{"type": 42}]',
                    '[{"type": {"name": "A"}}]',
                    '[{"subType": "x"}]',
                    '[{"type": "A", "subType": ""}]',
                    '[{"type": "A", "subType": 42}]',
                    '[{"type": "A", "subtype": "x"}]',
                    '[{"type": "A", "releaseConditions": {"predecessor": "A"}}]',
                    '[{"type": "A", "and": []}]',
                    '[{"type": "A"}, {"type": "B"}, {"type": "A"}]',
                    '[{"type": "A", "subType": "x"}, {"type": "A", "subType": "x"}]',
                    '[{"type": "A", "subType": "x"}, {"type": "A.x"}]',
                    '[{"type": "A"}, {"type": "A", "subType": "x"}]',
                    '[{"type": "A", "subType": "x"}, {"type": "A", "subType": "y"}, {"type": "A"}]'])
       WITH ORDINALITY AS m (messages, n) ORDER BY n;

-- the condition
SELECT condition, answer(with_condition(condition::jsonb))
  FROM unnest(ARRAY['null', '"A"', '[]', '[{"predecessor": "A"}]', '{}',
                    '{"predecessor": "A", "and": [{"predecessor": "A"}, {"predecessor": "B"}]}',
                    '{"and": [{"predecessor": "A"}, {"predecessor": "B"}],
                      "or": [{"predecessor": "A"}, {"predecessor": "B"}]}',
                    '{"not": {"predecessor": "A"}}',
                    '{"predecessor": "A", "optional": true}',
                    '{"Predecessor": "A"}',
                    '{"predecessor": ""}',
                    '{"predecessor": null}',
                    '{"predecessor": ["A", "B"]}',
                    '{"and": []}',
                    '{"and": null}',
                    '{"and": {"predecessor": "A"}}',
                    '{"and": [{"predecessor": "A"}]}',
                    '{"or": [{"predecessor": "A"}]}',
                    '{"or": ["A", "B"]}',
                    '{"and": [{"predecessor": "A"}, {"predecessor": "A"}]}',
                    '{"or": [{"predecessor": "A"}, {"predecessor": "B"}, {"predecessor": "A"}]}',
                    '{"and": [{"predecessor": "A"}, {"or": [{"predecessor": "B"}, {"and": [{"predecessor": "A"}]}]}]}',
                    '{"and": [{"predecessor": "A"}, {"or": [{"predecessor": "B"}, {"predecesor": "C.x"}]}]}',
                    '{"predecessor": "E"}',
                    '{"predecessor": "a"}',
                    '{"predecessor": "C"}',
                    '{"predecessor": "C.y"}',
                    '{"or": [{"predecessor": "A"}, {"and": [{"predecessor": "B"}, {"predecessor": "E"}]}]}',
                    '{"predecessor": "D"}',
                    '{"or": [{"predecessor": "A"}, {"predecessor": "D"}]}'])
       WITH ORDINALITY AS c (condition, n) ORDER BY n;

-- cycles
SELECT messages, answer(with_messages(messages::jsonb))
  FROM unnest(ARRAY['[{"type": "A", "releaseCondition": {"predecessor": "B"}},
                      {"type": "B", "releaseCondition": {"predecessor": "A"}}]',
                    '[{"type": "A"},
                      {"type": "B", "releaseCondition": {"and": [{"predecessor": "A"}, {"predecessor": "D"}]}},
                      {"type": "C", "releaseCondition": {"predecessor": "B"}},
                      {"type": "D", "releaseCondition": {"predecessor": "C"}}]',
                    '[{"type": "A", "subType": "x", "releaseCondition": {"predecessor": "A.y"}},
                      {"type": "A", "subType": "y", "releaseCondition": {"predecessor": "A.x"}}]'])
       WITH ORDINALITY AS m (messages, n) ORDER BY n;
-- one through 300 types
SELECT answer(with_messages(jsonb_agg(jsonb_build_object('type', 'T' || n, 'releaseCondition',
                                      jsonb_build_object('predecessor', 'T' || n % 300 + 1)) ORDER BY n)))
  FROM generate_series(1, 300) AS n;

-- too long: what stands here has one byte more than the limit
SELECT place, answer(jsonb_set(with_condition('{"predecessor": "A"}'), place, to_jsonb(repeat('x', 513))))
  FROM unnest(ARRAY['{sequences,0,name}', '{sequences,0,messages,0,type}', '{sequences,0,messages,2,subType}',
                    '{sequences,0,messages,3,releaseCondition,predecessor}', '{sequences,0,retentionPeriod}'])
       WITH ORDINALITY AS p (path, n), LATERAL (SELECT path::text[]) AS t (place) ORDER BY n;
SELECT answer(jsonb_set(with_condition('{"predecessor": "A"}'), '{sequences,0,messages,2,subType}',
                        to_jsonb(repeat('x', 511))));

-- of several faults, the path leads to the first; and its keys are whole
SELECT answer('{"sequences": [{"name": "S", "retentionPeriod": "1 day", "messages": [{"type": "A"}]},
                              {"name": "T", "retentionPeriod": "1 day",
                               "messages": [{"type": "B"}, {"type": "C", "a key with spaces": 1}]},
                              {"name": "U"}]}');

-- types of sequences that are declared already
SELECT seqinbox_declare('{"sequences": [{"name": "T", "retentionPeriod": "1 day",
                                         "messages": [{"type": "A"}, {"type": "B", "subType": "x"}]}]}');
SELECT messages, answer(with_messages(messages::jsonb))
  FROM unnest(ARRAY['[{"type": "C"}, {"type": "A"}]',
                    '[{"type": "C"}, {"type": "B", "subType": "x"}]',
                    '[{"type": "B.x"}]',
                    '[{"type": "A", "subType": "x"}]',
                    '[{"type": "C"}, {"type": "B"}]',
                    '[{"type": "C", "releaseCondition": {"predecessor": "A"}}]'])
       WITH ORDINALITY AS m (messages, n) ORDER BY n;

-- nothing came of any of this
SELECT name, retention_period FROM sequence_declaration;
SELECT message_type, sequence_name FROM message_type_declaration ORDER BY place;

-- the argument
SELECT seqinbox_declare(NULL);
\echo :SQLSTATE
BEGIN READ ONLY;
SELECT seqinbox_declare(with_messages('[{"type": "C"}]'));
\echo :SQLSTATE
ROLLBACK;
SET search_path = declare_missing;
SELECT seqinbox_declare('{"sequences": [{"name": "S", "retentionPeriod": "1 day", "messages": [{"type": "A"}]}]}');
\echo :SQLSTATE
-- what is wrong with the document comes first
SELECT seqinbox_declare('{}');
\echo :SQLSTATE
RESET search_path;

SET client_min_messages = warning;
DROP SCHEMA declare_invalid CASCADE;
