SELECT pgq.ticker();
SELECT coalesce(pgq.next_batch('orders', 'bench'), 0) AS batch \gset
\if :batch = 0
\sleep 10 ms
\else
BEGIN;
INSERT INTO consumed SELECT count(*) FROM pgq.get_batch_events(:batch);
SELECT pgq.finish_batch(:batch);
COMMIT;
\endif
