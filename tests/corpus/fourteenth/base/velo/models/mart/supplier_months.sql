MODEL (
  name mart.supplier_months,
  kind FULL,
  grain (month, supplier, currency),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (month, supplier, currency)),
    NOT_NULL(columns := (month, supplier))
  )
);

SELECT
  TRUNC(p.ordered_on, 'MM') AS month,
  p.supplier,
  p.currency,
  SUM(p.qty * p.price / p.price_per) AS amount,
  COUNT(*) AS lines
FROM stg.purchase_lines AS p
GROUP BY
  TRUNC(p.ordered_on, 'MM'),
  p.supplier,
  p.currency
