MODEL (
  name mart.availability,
  kind FULL,
  cron '@daily',
  grain (turbine, month),
  audits (
    NOT_NULL(columns := (turbine, month)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (turbine, month))
  )
);

WITH months AS (
  SELECT
    t.turbine,
    EXPLODE(SEQUENCE(DATE '2024-01-01', DATE '2024-12-01', INTERVAL '1' MONTH)) AS month
  FROM ref.turbines AS t
), down AS (
  SELECT
    s.turbine,
    TRUNC(s.began_at, 'MM') AS month,
    SUM(s.hours) AS hours,
    COUNT(DISTINCT s.island) AS stops
  FROM core.stops AS s
  WHERE
    NOT s.planned
  GROUP BY
    s.turbine,
    TRUNC(s.began_at, 'MM')
)
SELECT
  m.turbine,
  m.month,
  COALESCE(d.hours, 0) AS down_hours,
  COALESCE(d.stops, 0) AS stops,
  ROUND(1 - COALESCE(d.hours, 0) / (DAY(LAST_DAY(m.month)) * 24), 4) AS availability,
  AVG(COALESCE(d.hours, 0)) OVER (PARTITION BY m.turbine ORDER BY m.month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS mean_3m
FROM months AS m
LEFT JOIN down AS d
  ON m.turbine = d.turbine AND m.month = d.month
