MODEL (
  name bill.mrr,
  kind FULL,
  description 'Monthly recurring revenue by plan at list price.',
  grain plan_code
);

SELECT
  p.plan_code,
  p.plan_name,
  COUNT(a.account_id) AS accounts,
  SUM(COALESCE(a.seats, 0)) AS seats,
  SUM(COALESCE(a.seats, 0) * p.monthly_price) AS mrr
FROM bill.plans AS p
LEFT JOIN bill.accounts AS a
  ON p.plan_code = a.plan_code AND a.status = 'active'
GROUP BY
  p.plan_code,
  p.plan_name
