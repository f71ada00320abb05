MODEL (
  name shop.unshipped,
  kind FULL,
  description 'Order lines without any shipment. A line that was ordered twice is listed twice.'
);

SELECT
  l.order_id,
  l.sku
FROM src.order_lines AS l
WHERE
  NOT EXISTS(
    SELECT
      1
    FROM src.shipped_lines AS s
    WHERE
      s.order_id = l.order_id AND s.sku = l.sku
  )
