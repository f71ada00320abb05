MODEL (
  name core.sales,
  kind FULL,
  grain (order_id, line_no),
  description 'Lines of paid orders; amounts in cents, with VAT.',
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (order_id, line_no)),
    NOT_NULL(columns := (order_id, line_no))
  )
);

SELECT
  l.order_id,
  l.line_no,
  o.visitor_id,
  o.channel,
  o.created_at,
  o.ordered_on,
  l.ticket_no,
  l.product_code,
  p.category,
  p.vat_rate_pct,
  l.visit_date,
  l.slot,
  l.quantity,
  l.quantity * p.admits AS persons,
  CAST(l.quantity * l.unit_price_cents * (100 - l.discount_pct) / 100 AS BIGINT) AS amount_cents,
  l.refunded
FROM stg.order_lines AS l
JOIN stg.orders AS o
  ON o.order_id = l.order_id
JOIN ref.products AS p
  ON p.product_code = l.product_code
WHERE
  o.status = 'PAID'
