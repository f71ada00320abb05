MODEL (
  name freight_mart.vessel_speed,
  kind FULL,
  grain (vessel, week_start)
);

SELECT
  p.vessel,
  CAST(DATE_TRUNC('WEEK', p.seen_at) AS DATE) AS week_start,
  AVG(p.speed) AS mean_speed,
  MAX(p.speed) AS top_speed
FROM freight_stg.positions AS p
WHERE
  p.speed > 0.5
GROUP BY
  p.vessel,
  CAST(DATE_TRUNC('WEEK', p.seen_at) AS DATE)
