\set n :n + 1000
SELECT count(*) FROM generate_series(1, 1000) g WHERE seqinbox_try_claim('Order0', ((:n + g) % 100000 * 7919 % 100000)::text, 1000) <> 'DUPLICATE';
