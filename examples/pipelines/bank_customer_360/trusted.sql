CREATE STREAMING TABLE trusted.customers
  COMMENT 'Every version of a customer, with the time when it held';

CREATE FLOW customer_changes AS AUTO CDC INTO trusted.customers
FROM STREAM(staging.personal)
KEYS (customer_id)
APPLY AS DELETE WHEN event = 'closed'
SEQUENCE BY changed_at
COLUMNS * EXCEPT (event, changed_at, topic, partition, offset, timestamp)
STORED AS SCD TYPE 2;

CREATE STREAMING TABLE trusted.cards
  COMMENT 'Cards as they are now';

CREATE FLOW card_changes AS AUTO CDC INTO trusted.cards
FROM STREAM(staging.cards)
KEYS (card_id)
SEQUENCE BY changed_at
COLUMNS * EXCEPT (topic, partition, offset, timestamp)
STORED AS SCD TYPE 1;

CREATE STREAMING TABLE trusted.payments (
  CONSTRAINT positive EXPECT (amount > 0) ON VIOLATION QUARANTINE ROW,
  CONSTRAINT paid_once EXPECT UNIQUE (payment_id) ON VIOLATION DROP ROW
)
AS SELECT payment_id, card_id, amount, country, paid_at FROM STREAM(staging.payments);
