-- As receive.sql, but each ID is greater than the one before.
\set n :n + 1
\set id 4000000000000000000 + :turn * 10000000000 + :client_id * 100000000 + :n
\set context hash(:client_id * 100000000 + :n / 10, :turn)
\set type :n % 10
SELECT * FROM seqinbox_receive('Order' || :type, :id, :context, '{"order": 17}');
\sleep :network us
