MODEL (
  name shop.weekly_orders,
  kind FULL,
  grain (week, segment)
);

SELECT
  CAST(DATE_TRUNC('WEEK', l.ordered_at) AS DATE) AS week,
  COALESCE(c.segment, 'unknown') AS segment,
  COUNT(DISTINCT l.order_id) AS orders,
  SUM(l.quantity) AS quantity
FROM src.order_lines AS l
LEFT JOIN shop.customers AS c
  ON l.customer_id = c.customer_id
GROUP BY
  CAST(DATE_TRUNC('WEEK', l.ordered_at) AS DATE),
  COALESCE(c.segment, 'unknown')
