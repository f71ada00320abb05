MODEL (
  name bill.revenue,
  kind FULL,
  grain (issued_on, currency),
  audits (
    NOT_NULL(columns := (issued_on, currency))
  )
);

SELECT
  t.issued_on,
  t.currency,
  COUNT(*) AS invoices,
  COUNT(DISTINCT t.account_id) AS accounts,
  SUM(t.net_amount) AS net_amount,
  SUM(t.net_amount * COALESCE(fx.rate, 1)) AS net_home
FROM bill.invoice_totals AS t
LEFT JOIN bill.fx_daily AS fx
  ON t.currency = fx.currency AND t.issued_on = fx.day
WHERE
  t.status IN ('open', 'paid')
GROUP BY
  t.issued_on,
  t.currency
