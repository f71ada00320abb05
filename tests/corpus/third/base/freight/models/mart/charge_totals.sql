MODEL (
  name freight_mart.charge_totals,
  kind FULL,
  grain (charge_kind, month)
);

SELECT
  c.charge_kind,
  CAST(DATE_TRUNC('MONTH', c.invoiced_on) AS DATE) AS month,
  SUM(c.amount_eur) AS amount_eur,
  COUNT(*) AS lines
FROM freight_int.charges_eur AS c
GROUP BY
  c.charge_kind,
  CAST(DATE_TRUNC('MONTH', c.invoiced_on) AS DATE)
