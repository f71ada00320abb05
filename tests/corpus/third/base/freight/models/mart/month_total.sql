MODEL (
  name freight_mart.month_total,
  kind VIEW,
  grain month
);

SELECT
  t.month,
  SUM(t.amount_eur) AS amount_eur,
  SUM(t.lines) AS lines
FROM freight_mart.charge_totals AS t
GROUP BY
  t.month
