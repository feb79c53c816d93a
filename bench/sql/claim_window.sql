\set n :n + 1
\set id hash(:client_id * 100000000 + :n, :turn)
SELECT seqinbox_claim('Order0', :id);
