MODEL (
  name mart.punctuality,
  kind FULL,
  grain (route_code, month_start),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (route_code, month_start))
  )
);

SELECT
  s.route_code,
  DATE_TRUNC('MONTH', s.departs_at) AS month_start,
  COUNT(*) AS sailings,
  SUM(
    CASE
      WHEN TIMESTAMPDIFF(MINUTE, s.departs_at, s.departed_at) > @late_minutes
      THEN 1
      ELSE 0
    END
  ) AS late,
  AVG(TIMESTAMPDIFF(MINUTE, s.departs_at, s.departed_at)) AS avg_delay_minutes,
  PERCENTILE_APPROX(TIMESTAMPDIFF(MINUTE, s.departs_at, s.departed_at), 0.9) AS p90_delay_minutes
FROM stg.sailings AS s
WHERE
  s.status = 'completed'
GROUP BY
  s.route_code,
  DATE_TRUNC('MONTH', s.departs_at)
