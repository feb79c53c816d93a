-- The trace context of a message: a traceparent as the W3C recommendation has
-- it fills the trace columns; any other is treated as absent, and never stops
-- a message.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('traceparent');
RESET client_min_messages;
SET search_path = traceparent;
INSERT INTO sequence_instance (id, name, context_id, state, created_at, retain_until)
VALUES (1001, 'S', 'one', 'OPEN', now(), now());

CREATE FUNCTION trace(traceparent text, OUT high text, OUT low text, OUT span text, OUT parent bigint,
                      OUT string text, OUT sampled boolean) LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM sequenced_message;
    PERFORM seqinbox_store('A', 'a-1', 1001, 'PROCESSED', traceparent => traceparent);
    SELECT to_hex(trace_id_high), to_hex(trace_id), to_hex(span_id), parent_span_id, trace_id_string, m.sampled
      INTO high, low, span, parent, string, sampled FROM sequenced_message m;
END
$$;
\pset null '-'

-- the recommendation's own example, sampled and not; of the flags only the
-- last bit is known
SELECT flags, trace.*
  FROM unnest('{01,00,03,fe,ff,80}'::text[]) AS flags,
       trace('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-' || flags);

-- any bits but all zero
SELECT id, trace.*
  FROM unnest('{00000000000000000000000000000001-0000000000000001,
                80000000000000000000000000000000-8000000000000000,
                00000000000000010000000000000000-0000000000000010,
                ffffffffffffffffffffffffffffffff-ffffffffffffffff,
                7fffffffffffffff8000000000000000-7fffffffffffffff,
                00000000000000000000000000000000-b7ad6b7169203331,
                0af7651916cd43dd8448eb211c80319c-0000000000000000}'::text[]) AS id,
       trace('00-' || id || '-01');

-- versions: ff is none; a higher one may have more behind a dash, 00 may not
SELECT prefix, suffix, string IS NOT NULL AS present, sampled
  FROM (VALUES ('00', ''), ('00', '-'), ('00', '-extra'), ('00', 'x'), ('00', ' '),
               ('01', ''), ('01', '-'), ('01', '-extra-more'), ('01', 'x'), ('01', '.extra'),
               ('cc', '-extra'), ('fe', ''), ('ff', ''), ('ff', '-extra'),
               ('0', ''), ('000', ''), ('0x', ''), ('0A', '')) AS v (prefix, suffix),
       trace(prefix || '-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' || suffix);

-- not well-formed
SELECT value, string IS NOT NULL AS present
  FROM (VALUES (''), (' '), ('garbage'), ('-'), ('---'), (NULL),
               ('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0'),
               ('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-'),
               ('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331'),
               ('0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'),
               ('00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01'),
               ('00-0af7651916cd43dd8448eb211c80319c0-b7ad6b7169203331-01'),
               ('00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333-01'),
               ('00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-01'),
               ('00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333A-01'),
               ('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0A'),
               ('00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01'),
               ('00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333g-01'),
               ('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g'),
               ('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-+1'),
               ('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331- 1'),
               ('00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'),
               ('00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01'),
               ('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331_01'),
               (' 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'),
               (E'00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n'),
               ('{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}'),
               ('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01,00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')
       ) AS v (value), trace(value);
SELECT string IS NOT NULL AS present FROM trace(repeat('0', 1000000));
SELECT string IS NOT NULL AS present FROM trace('01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-' || repeat('x', 1000000));

-- a malformed one leaves what an earlier delivery brought
SELECT string FROM trace('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01');
SELECT seqinbox_store('A', 'a-1', 1001, 'PROCESSED', traceparent => 'garbage') > 0 AS stored;
SELECT trace_id_string, sampled FROM sequenced_message;
-- and a later one replaces all of it, the flag as well
SELECT seqinbox_store('A', 'a-1', 1001, 'PROCESSED',
                      traceparent => '00-00000000000000000000000000000001-0000000000000002-00') > 0 AS stored;
SELECT trace_id_high, trace_id, span_id, trace_id_string, sampled FROM sequenced_message;

-- the other function that takes one
INSERT INTO sequence_declaration (name, retention_period) VALUES ('T', '1 day');
INSERT INTO message_type_declaration (message_type, sequence_name) VALUES ('B', 'T');
SELECT seqinbox_record_failure('B', 'b-1', 'c', 'error',
                               traceparent => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01') > 0 AS recorded;
SELECT seqinbox_record_failure('B', 'b-2', 'c', 'error', traceparent => 'garbage') > 0 AS recorded;
SELECT idempotence_id, trace_id_string, sampled FROM sequenced_message WHERE message_type = 'B' ORDER BY id;

\pset null ''
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA traceparent CASCADE;
