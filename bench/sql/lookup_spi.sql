\set id random(0, 99999)
SELECT spi_lookup('Order0', :id);
