MODEL (
  name freight_stg.invoice_lines,
  kind FULL,
  grain (invoice_no, line_no),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (invoice_no, line_no))
  )
);

WITH numbered AS (
  SELECT
    l.*,
    ROW_NUMBER() OVER (PARTITION BY l.invoice_no, l.line_no ORDER BY l.updated_at DESC, l.amount) AS rn
  FROM erp.invoice_lines AS l
)
SELECT
  invoice_no,
  line_no,
  shipment_no,
  UPPER(charge_code) AS charge_code,
  currency,
  amount,
  invoiced_on
FROM numbered
WHERE
  rn = 1
