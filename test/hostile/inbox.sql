-- A filled inbox for tests that call its functions at random: sequences in
-- each form, and messages in each state. The roles app, operator and observer
-- have what their names say.
CREATE EXTENSION seqinbox;
SET client_min_messages = warning;
SELECT seqinbox_create_inbox('inbox');
SET search_path = inbox;

SELECT seqinbox_declare('{"sequences": [
    {"name": "Orders", "retentionPeriod": "7 days", "messages": [
        {"type": "Placed"},
        {"type": "Checked", "subType": "STOCK", "releaseCondition": {"predecessor": "Placed"}},
        {"type": "Checked", "subType": "CREDIT", "releaseCondition": {"predecessor": "Placed"}},
        {"type": "Packed", "releaseCondition": {"and": [{"predecessor": "Checked.STOCK"},
                                                        {"predecessor": "Checked.CREDIT"}]}},
        {"type": "Shipped", "releaseCondition": {"or": [{"predecessor": "Packed"},
            {"and": [{"predecessor": "Placed"}, {"or": [{"predecessor": "Checked.STOCK"},
                                                        {"predecessor": "Checked.CREDIT"}]}]}]}}]},
    {"name": "Returns", "retentionPeriod": "PT1H", "sequencingStartTimestamp": "2999-12-31T00:00:00Z",
     "messages": [{"type": "Announced"},
                  {"type": "Arrived", "releaseCondition": {"predecessor": "Announced"}}]},
    {"name": "Trace", "retentionPeriod": "1 day", "messages": [
        {"type": "Never"}, {"type": "Traced", "releaseCondition": {"predecessor": "Never"}}]}]}');

-- waiting, processed, failed with and without payload, to be retried, dead
SELECT seqinbox_receive('Placed', 'placed-' || n, 'order-' || n, 'value') FROM generate_series(1, 10) AS n;
SELECT seqinbox_receive('Packed', 'packed-' || n, 'order-' || n, 'value', 'key', '{a,b}', '{c,NULL}', 'orders', 'main',
                        traceparent => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')
  FROM generate_series(1, 20) AS n;
SELECT seqinbox_receive('Shipped', 'shipped-' || n, 'order-' || n, NULL) FROM generate_series(11, 20) AS n;
SELECT seqinbox_record_failure('Placed', 'failed-' || n, 'order-' || n, 'error',
                               CASE n % 2 WHEN 0 THEN '\x00'::bytea END,
                               retry_after => CASE n % 4 WHEN 0 THEN interval '0' END)
  FROM generate_series(11, 20) AS n;
SELECT seqinbox_dead_letter(id, 'reason')
  FROM (SELECT id FROM sequenced_message WHERE state <> 'PROCESSED' ORDER BY id LIMIT 10) AS m;
SELECT seqinbox_receive('Arrived', 'arrived-' || n, 'return-' || n, 'value') FROM generate_series(1, 5) AS n;
SELECT seqinbox_close(id) FROM sequence_instance WHERE context_id = 'order-1';
SELECT seqinbox_claim('Webhook', 'hook-' || n) FROM generate_series(1, 10) AS n;
INSERT INTO sequence_instance (name, context_id, state, created_at, retain_until)
SELECT 'Orders', 'expired-' || n, 'OPEN', now() - interval '9 days', now() - interval '2 days'
  FROM generate_series(1, 5) AS n;

CREATE ROLE app LOGIN;
CREATE ROLE operator LOGIN;
CREATE ROLE observer LOGIN;
SELECT seqinbox_grant('app', 'consumer'), seqinbox_grant('operator', 'operator'), seqinbox_grant('observer', 'observer');
ANALYZE;
