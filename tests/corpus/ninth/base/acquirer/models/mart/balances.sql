MODEL (
  name mart.balances,
  kind FULL,
  grain (merchant_id, account, booked_on),
  audits (unique_combination_of_columns(columns := (merchant_id, account, booked_on)))
);

WITH days AS (
  SELECT l.merchant_id, l.account, l.booked_on, SUM(l.amount_eur) AS moved_eur
  FROM raw.ledger AS l
  GROUP BY l.merchant_id, l.account, l.booked_on
)

SELECT
  d.merchant_id,
  d.account,
  d.booked_on,
  d.moved_eur,
  SUM(d.moved_eur) OVER (
    PARTITION BY d.merchant_id, d.account ORDER BY d.booked_on
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS balance_eur,
  LAG(d.booked_on) OVER (PARTITION BY d.merchant_id, d.account ORDER BY d.booked_on) AS moved_before,
  SUM(d.moved_eur) OVER (
    PARTITION BY d.merchant_id, d.account ORDER BY d.booked_on
    RANGE BETWEEN 6 PRECEDING AND CURRENT ROW
  ) AS week_eur
FROM days AS d
