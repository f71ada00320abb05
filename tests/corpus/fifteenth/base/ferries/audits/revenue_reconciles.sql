AUDIT (
  name revenue_reconciles,
  dialect spark,
  standalone true,
  cron '@daily'
);

WITH sold AS (
  SELECT SUM(revenue_eur) AS total FROM core.ticket_revenue
), daily AS (
  SELECT SUM(revenue_eur) AS total FROM mart.route_daily
)
SELECT
  sold.total,
  daily.total AS daily_total
FROM sold
CROSS JOIN daily
WHERE
  ABS(sold.total - daily.total) > 0.01
