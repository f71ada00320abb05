MODEL (
  name mart.month_balances,
  kind VIEW,
  grain (merchant_id, month)
);

SELECT
  b.merchant_id,
  TRUNC(b.booked_on, 'MONTH') AS month,
  SUM(b.balance_eur) AS balance_eur,
  SUM(CASE WHEN b.account = 'reserve' THEN b.balance_eur END) AS reserve_eur
FROM mart.balances AS b
WHERE b.booked_on = (
  SELECT MAX(x.booked_on) FROM mart.balances AS x
  WHERE x.merchant_id = b.merchant_id
    AND x.account = b.account
    AND TRUNC(x.booked_on, 'MONTH') = TRUNC(b.booked_on, 'MONTH')
)
GROUP BY b.merchant_id, TRUNC(b.booked_on, 'MONTH')
