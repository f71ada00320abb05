MODEL (
  name @{region}.orders,
  kind FULL,
  blueprints (
    (region := eu, countries := ('DE', 'FR', 'NL')),
    (region := us, countries := ('US', 'CA')),
    (region := asia, countries := ('JP', 'KR'))
  ),
  grain order_id
);

SELECT
  o.order_id,
  o.player_id,
  o.sku,
  o.country,
  o.gross - COALESCE(o.refunded, 0) AS net,
  o.ordered_at
FROM shop.orders AS o
WHERE
  o.country IN @countries
