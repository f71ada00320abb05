MODEL (
  name stg.purchase_lines,
  kind FULL,
  grain (po_no, line_no),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (po_no, line_no)),
    NOT_NULL(columns := (po_no, line_no, part_no))
  )
);

SELECT
  p.po_no,
  CAST(p.line_no AS INT) AS line_no,
  UPPER(p.part_no) AS part_no,
  p.supplier,
  CAST(p.qty AS INT) AS qty,
  CAST(p.price AS DECIMAL(12, 4)) AS price,
  CAST(p.price_per AS INT) AS price_per,
  UPPER(p.currency) AS currency,
  CAST(p.ordered_on AS DATE) AS ordered_on,
  CAST(p.promised_on AS DATE) AS promised_on,
  CAST(p.received_on AS DATE) AS received_on
FROM erp.purchase_lines AS p
