MODEL (
  name mart.reason_months,
  kind FULL,
  cron '@daily'
);

SELECT
  *
FROM (
  SELECT
    TRUNC(s.began_at, 'MM') AS month,
    s.reason,
    s.hours
  FROM core.stops AS s
)
PIVOT(SUM(hours) FOR reason IN ('grid' AS grid, 'ice' AS ice, 'service' AS service))
