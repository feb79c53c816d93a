\set id random(0, 99999)
SELECT seqinbox_try_claim('Order0', :id, 1000);
