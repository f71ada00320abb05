MODEL (
  name mart.forecast_error,
  kind FULL,
  cron '@daily',
  grain (site, day)
);

WITH measured AS (
  SELECT
    t.site,
    e.hour,
    AVG(e.wind_ms) AS wind_ms
  FROM core.energy_hours AS e
  INNER JOIN ref.turbines AS t
    ON e.turbine = t.turbine
  WHERE
    e.samples = 6
  GROUP BY
    t.site,
    e.hour
)
SELECT
  m.site,
  CAST(m.hour AS DATE) AS day,
  COUNT(f.wind_ms) AS hours,
  AVG(ABS(m.wind_ms - f.wind_ms)) AS mean_error,
  SQRT(AVG(POWER(m.wind_ms - f.wind_ms, 2))) AS rms_error,
  CORR(m.wind_ms, f.wind_ms) AS correlation
FROM measured AS m
LEFT JOIN core.forecast_latest AS f
  ON m.site = f.site AND m.hour = f.valid_at
GROUP BY
  m.site,
  CAST(m.hour AS DATE)
