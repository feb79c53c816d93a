\set n :n + 1
\set type :n % 10
SELECT pgq.insert_event('orders', 'Order' || :type, '{"order": 17}');
