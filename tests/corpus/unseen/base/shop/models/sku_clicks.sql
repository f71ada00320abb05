MODEL (
  name shop.sku_clicks,
  kind VIEW,
  grain sku
);

SELECT
  k.sku,
  k.title,
  k.country,
  COALESCE(SUM(d.clicks), 0) AS clicks
FROM shop.skus AS k
LEFT JOIN shop.clicks_daily AS d
  ON k.sku = d.sku
GROUP BY
  k.sku,
  k.title,
  k.country
