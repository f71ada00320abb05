MODEL (
  name shop.clicks_daily,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column click_date,
    batch_size 30
  ),
  partitioned_by (click_date),
  grain (sku, click_date),
  audits (
    NOT_NULL(columns := (click_date))
  )
);

SELECT
  COALESCE(c.sku, 'none') AS sku,
  CAST(c.clicked_at AS DATE) AS click_date,
  COUNT(*) AS clicks,
  COUNT(DISTINCT c.customer_id) AS customers
FROM src.clicks AS c
WHERE
  CAST(c.clicked_at AS DATE) BETWEEN @start_ds AND @end_ds
GROUP BY
  COALESCE(c.sku, 'none'),
  CAST(c.clicked_at AS DATE)
