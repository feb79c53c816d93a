-- seqinbox_diagram: a sequence as a Mermaid flowchart.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('diagram');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = diagram;
\pset format unaligned
\pset tuples_only

-- one message; a predecessor; the order is that of the declaration
SELECT seqinbox_declare('{"sequences": [
    {"name": "One", "retentionPeriod": "1 day", "messages": [{"type": "Only"}]},
    {"name": "Chain", "retentionPeriod": "1 day", "messages": [
        {"type": "C", "releaseCondition": {"predecessor": "B"}},
        {"type": "B", "releaseCondition": {"predecessor": "A"}},
        {"type": "A"}]}]}');
SELECT seqinbox_diagram('One');
SELECT seqinbox_diagram('Chain');

-- and, or, nested; each has a node of its own; sub-types by their full name
SELECT seqinbox_declare('{"sequences": [
    {"name": "Orders", "retentionPeriod": "1 day", "messages": [
        {"type": "OrderCreated"},
        {"type": "OrderValidated", "subType": "STOCK", "releaseCondition": {"predecessor": "OrderCreated"}},
        {"type": "OrderValidated", "subType": "CREDIT", "releaseCondition": {"predecessor": "OrderCreated"}},
        {"type": "PaidByCard"}, {"type": "PaidByInvoice"},
        {"type": "OrderShipped", "releaseCondition": {"and": [
            {"predecessor": "OrderValidated.STOCK"},
            {"or": [{"predecessor": "PaidByCard"},
                    {"and": [{"predecessor": "PaidByInvoice"}, {"predecessor": "OrderValidated.CREDIT"}]}]}]}},
        {"type": "OrderClosed", "releaseCondition": {"or": [
            {"predecessor": "OrderShipped"}, {"predecessor": "OrderCreated"}]}}]}]}');
SELECT seqinbox_diagram('Orders');

-- with a context: what was processed, waits, failed, is missing; of several
-- messages of a type, what needs attention most
SELECT outcome FROM seqinbox_receive('OrderCreated', 'c-1', 'order 1', NULL);
SELECT outcome FROM seqinbox_receive('OrderCreated', 'c-2', 'order 1', NULL);
SELECT outcome FROM seqinbox_receive('OrderShipped', 's-1', 'order 1', NULL);
SELECT outcome FROM seqinbox_receive('OrderValidated.STOCK', 'v-1', 'order 1', NULL);
SELECT seqinbox_record_failure('OrderValidated.STOCK', 'v-2', 'order 1', 'error') > 0;
SELECT seqinbox_record_failure('PaidByCard', 'p-1', 'order 1', 'error') > 0;
SELECT outcome FROM seqinbox_receive('OrderClosed', 'x-1', 'order 1', NULL);
SELECT i.id AS instance FROM sequence_instance i WHERE context_id = 'order 1' \gset
SELECT seqinbox_store('OrderClosed', 'x-2', :instance, 'WAITING') > 0;
SELECT seqinbox_diagram('Orders', 'order 1');
-- another context of the same sequence, and one without messages
SELECT outcome FROM seqinbox_receive('PaidByInvoice', 'i-2', 'order 2', NULL);
SELECT line FROM regexp_split_to_table(seqinbox_diagram('Orders', 'order 2'), '\n') AS line WHERE line LIKE '    class t%';
SELECT seqinbox_open_instance('Orders', 'order 3') > 0;
SELECT line FROM regexp_split_to_table(seqinbox_diagram('Orders', 'order 3'), '\n') AS line WHERE line LIKE '    class t%';
-- nothing but the classes is added
SELECT starts_with(seqinbox_diagram('Orders', 'order 1'), seqinbox_diagram('Orders'));

-- names with all that could be taken for Mermaid's own
SELECT seqinbox_declare('{"sequences": [
    {"name": "Names; \"quoted\" [x] #1", "retentionPeriod": "1 day", "messages": [
        {"type": "with spaces"}, {"type": " blank at the ends "}, {"type": "\"quoted\""}, {"type": "''single''"},
        {"type": "[square]"}, {"type": "(round)"}, {"type": "{curly}"}, {"type": "<b>bold</b>"}, {"type": "a|b"},
        {"type": "semi;colon"}, {"type": "#35;"}, {"type": "#hash"}, {"type": "a & b &amp; c"}, {"type": "`tick`"},
        {"type": "back\\slash"}, {"type": "a --> b"}, {"type": "%% comment"}, {"type": "end"}, {"type": "class"},
        {"type": "two\nlines\tand a tab"}, {"type": "a.b", "subType": "c.d"},
        {"type": "t0", "releaseCondition": {"and": [{"predecessor": "\"quoted\""}, {"predecessor": "[square]"}]}},
        {"type": "g0", "releaseCondition": {"predecessor": "two\nlines\tand a tab"}}]}]}');
SELECT seqinbox_diagram('Names; "quoted" [x] #1');
SELECT outcome FROM seqinbox_receive('"quoted"', 'q-1', 'context "x"; #1', NULL);
SELECT line FROM regexp_split_to_table(seqinbox_diagram('Names; "quoted" [x] #1', 'context "x"; #1'), '\n') AS line
 WHERE line LIKE '    class t%' AND line NOT LIKE '% missing';

-- a predecessor that is not in the sequence, as only a change by hand can leave
-- it
UPDATE message_type_declaration SET release_condition = '{"or": [{"predecessor": "A"}, {"predecessor": "[gone]"}]}'
 WHERE message_type = 'B';
SELECT seqinbox_diagram('Chain');

-- what may be wrong
\pset format aligned
\pset tuples_only off
SELECT seqinbox_diagram('Unknown');
\echo :SQLSTATE
SELECT seqinbox_diagram('orders');
\echo :SQLSTATE
SELECT seqinbox_diagram('Unknown', 'order 1');
\echo :SQLSTATE
SELECT seqinbox_diagram('Orders', 'unknown');
\echo :SQLSTATE
SELECT seqinbox_diagram('One', 'order 1');
\echo :SQLSTATE
SELECT seqinbox_diagram(NULL);
\echo :SQLSTATE
SELECT seqinbox_diagram('');
\echo :SQLSTATE
SELECT seqinbox_diagram('Orders', '');
\echo :SQLSTATE
SELECT seqinbox_diagram(repeat('x', 513));
\echo :SQLSTATE
SELECT seqinbox_diagram('Orders', repeat('x', 2049));
\echo :SQLSTATE
-- it changes nothing
BEGIN READ ONLY;
SELECT length(seqinbox_diagram('Orders', 'order 1')) > 0 AS drawn;
COMMIT;
SET search_path = diagram_missing;
SELECT seqinbox_diagram('Orders');
\echo :SQLSTATE
RESET search_path;

SET client_min_messages = warning;
DROP SCHEMA diagram CASCADE;
