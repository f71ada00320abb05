MODEL (
  name mart.days,
  kind FULL,
  owner charts,
  grain day,
  audits (not_null(columns := (day)))
);

WITH spine AS (@DATE_SPINE('day', '2024-01-01', '2026-12-31'))
SELECT
  CAST(s.date_day AS DATE) AS day,
  COALESCE(SUM(d.plays), 0) AS plays,
  LAST_VALUE(SUM(d.plays), TRUE) OVER (ORDER BY CAST(s.date_day AS DATE) ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS last_known
FROM spine AS s
LEFT JOIN core.plays_daily AS d ON d.played_on = CAST(s.date_day AS DATE)
GROUP BY CAST(s.date_day AS DATE)
