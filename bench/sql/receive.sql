\set n :n + 1
\set id hash(:client_id * 100000000 + :n, :turn)
\set context hash(:client_id * 100000000 + :n / 10, :turn)
\set type :n % 10
SELECT * FROM seqinbox_receive('Order' || :type, :id, :context, '{"order": 17}');
\sleep :network us
