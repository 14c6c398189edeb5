CREATE MATERIALIZED VIEW refined.customer_360
  COMMENT 'A customer as the bank sees one: who it is, which cards, how much was paid'
AS SELECT
  customer_id,
  name,
  city,
  customers.country,
  count(DISTINCT card_id) AS cards,
  count(payment_id) AS payments,
  coalesce(sum(amount), 0) AS spent,
  max(paid_at) AS last_paid_at
FROM trusted.customers
LEFT JOIN trusted.cards USING (customer_id)
LEFT JOIN trusted.payments USING (card_id)
WHERE __END_AT IS NULL
GROUP BY ALL;

CREATE SINK fraud_alerts TOPIC 'fraud-alerts' FORMAT json;

-- Each payment is checked when it comes, with the current card and customer.
CREATE FLOW judged_payments AS INSERT INTO fraud_alerts BY NAME
SELECT card_id AS key, payment_id, customer_id, amount, paid_at, reason
FROM (
  SELECT
    *,
    CASE
      WHEN status = 'blocked' THEN 'the card is blocked'
      WHEN amount > credit_limit THEN 'above the limit of the card'
      WHEN payments.country <> customers.country AND amount > 500 THEN 'much, and far from home'
    END AS reason
  FROM STREAM(trusted.payments)
  JOIN trusted.cards USING (card_id)
  JOIN trusted.customers USING (customer_id)
  WHERE __END_AT IS NULL
)
WHERE reason IS NOT NULL;
