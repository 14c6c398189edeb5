CREATE STREAMING TABLE raw.orders
AS SELECT * FROM STREAM(sources.orders);

CREATE STREAMING TABLE trusted.orders
  COMMENT 'Each order as it is now';

CREATE FLOW order_changes AS AUTO CDC INTO trusted.orders
FROM STREAM(raw.orders)
KEYS (id)
SEQUENCE BY version
COLUMNS * EXCEPT (topic, partition, offset, timestamp, day)
STORED AS SCD TYPE 1;

CREATE MERGED VIEW refined.changes_by_customer
  MERGE (changes SUM, price SUM)
AS SELECT customer, count(*) AS changes, sum(price) AS price
FROM STREAM(raw.orders)
GROUP BY customer;
