MODEL (
  name freight_int.charges_eur,
  kind FULL,
  grain (invoice_no, line_no)
);

SELECT
  l.invoice_no,
  l.line_no,
  l.shipment_no,
  k.kind AS charge_kind,
  COALESCE(k.is_revenue, FALSE) AS is_revenue,
  l.invoiced_on,
  CAST(ROUND(l.amount * COALESCE(r.to_eur, 1), 2) AS DECIMAL(16, 2)) AS amount_eur
FROM freight_stg.invoice_lines AS l
LEFT JOIN freight_stg.rates AS r
  ON r.currency = l.currency AND l.invoiced_on >= r.valid_from AND l.invoiced_on < r.valid_before
LEFT JOIN freight.charge_codes AS k
  ON k.charge_code = l.charge_code
