MODEL (
  name core.balances,
  kind FULL,
  grain reservation_id,
  audits (UNIQUE_VALUES(columns := (reservation_id)), NOT_NULL(columns := (reservation_id)))
);

WITH due AS (
  SELECT n.reservation_id, SUM(n.nightly_price) AS amount_due
  FROM core.nights AS n
  GROUP BY n.reservation_id
), paid AS (
  SELECT y.reservation_id, SUM(y.amount) AS amount_paid
  FROM stg.payments AS y
  GROUP BY y.reservation_id
)
SELECT
  d.reservation_id,
  d.amount_due * (1 + @vat_rate) AS amount_due,
  COALESCE(p.amount_paid, 0) AS amount_paid,
  d.amount_due * (1 + @vat_rate) - COALESCE(p.amount_paid, 0) AS balance
FROM due AS d
LEFT JOIN paid AS p USING (reservation_id)
