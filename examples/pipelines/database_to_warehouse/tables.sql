CREATE STREAMING TABLE staging.orders AS SELECT * FROM STREAM(sources.orders);

CREATE STREAMING TABLE trusted.orders
  COMMENT 'The orders of the database; a window that was read twice does no harm';

CREATE FLOW order_changes AS AUTO CDC INTO trusted.orders
FROM STREAM(staging.orders)
KEYS (id)
APPLY AS DELETE WHEN status = 'deleted'
SEQUENCE BY updated_at
COLUMNS * EXCEPT (topic, partition, offset, timestamp)
STORED AS SCD TYPE 1;

CREATE MATERIALIZED VIEW refined.sales_by_day
AS SELECT ordered_on, count(*) AS orders, sum(amount) AS amount
FROM trusted.orders
WHERE status <> 'cancelled'
GROUP BY ordered_on;
