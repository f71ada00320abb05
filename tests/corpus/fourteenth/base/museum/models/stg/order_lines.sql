MODEL (
  name stg.order_lines,
  kind FULL,
  grain (order_id, line_no),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (order_id, line_no)),
    NOT_NULL(columns := (order_id, line_no, product_code)),
    sane_lines
  )
);

SELECT
  CAST(l.order_id AS BIGINT) AS order_id,
  CAST(l.line_no AS INT) AS line_no,
  UPPER(TRIM(l.ticket_no)) AS ticket_no,
  UPPER(l.product_code) AS product_code,
  CAST(l.visit_date AS DATE) AS visit_date,
  l.slot,
  CAST(l.quantity AS INT) AS quantity,
  CAST(l.unit_price_cents AS BIGINT) AS unit_price_cents,
  COALESCE(l.discount_pct, 0) AS discount_pct,
  l.refunded
FROM shop.order_lines AS l
