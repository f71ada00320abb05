MODEL (
  name bill.invoice_totals,
  kind FULL,
  description 'Net, tax and gross of each invoice, in the currency of the invoice.',
  grain invoice_id,
  audits (
    NOT_NULL(columns := (invoice_id)),
    UNIQUE_VALUES(columns := (invoice_id))
  )
);

WITH lines AS (
  SELECT
    l.invoice_id,
    COUNT(*) AS line_count,
    SUM(@net_of(l.quantity, l.unit_price, l.discount_pct)) AS net_amount,
    SUM(@net_of(l.quantity, l.unit_price, l.discount_pct) * COALESCE(l.tax_rate, 0)) AS tax_amount
  FROM pay.invoice_lines AS l
  GROUP BY
    l.invoice_id
)
SELECT
  i.invoice_id,
  i.account_id,
  i.issued_on,
  i.currency,
  i.status,
  COALESCE(lines.line_count, 0) AS line_count,
  CAST(COALESCE(lines.net_amount, 0) AS DECIMAL(14, 2)) AS net_amount,
  CAST(COALESCE(lines.tax_amount, 0) AS DECIMAL(14, 2)) AS tax_amount,
  CAST(COALESCE(lines.net_amount, 0) + COALESCE(lines.tax_amount, 0) AS DECIMAL(14, 2)) AS gross_amount
FROM bill.invoices AS i
LEFT JOIN lines
  ON i.invoice_id = lines.invoice_id
