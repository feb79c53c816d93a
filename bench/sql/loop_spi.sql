\set n :n + 1000
SELECT count(*) FROM generate_series(1, 1000) g WHERE NOT spi_lookup('Order0', ((:n + g) % 100000 * 7919 % 100000)::text);
