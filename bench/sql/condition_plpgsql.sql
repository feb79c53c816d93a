\set n :n + 1
\set id hash(:client_id * 100000000 + :n, :turn)
\set context :n % 1000
SELECT * FROM plpgsql_receive('OrderDone', :id, :context, '{"order": 17}');
