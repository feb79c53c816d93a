-- A queue with one consumer.

SELECT pgq.create_queue('orders');
SELECT pgq.set_queue_config('orders', 'ticker_max_lag', '10 milliseconds');
SELECT pgq.set_queue_config('orders', 'ticker_idle_period', '10 milliseconds');
SELECT pgq.register_consumer('orders', 'bench');
DROP TABLE IF EXISTS consumed;
CREATE TABLE consumed (events bigint);
