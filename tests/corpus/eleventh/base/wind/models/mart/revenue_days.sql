MODEL (
  name mart.revenue_days,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column day,
    lookback 1,
    batch_size 31
  ),
  cron '@daily',
  partitioned_by (day),
  grain (turbine, day),
  audits (
    NOT_NULL(columns := (turbine, day)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (turbine, day))
  )
);

SELECT
  e.turbine,
  t.site,
  CAST(e.hour AS DATE) AS day,
  SUM(e.energy_kwh) / 1000 AS mwh,
  SUM(e.energy_kwh / 1000 * p.price_mwh) AS revenue,
  SUM(CASE WHEN p.price_mwh < 0 THEN e.energy_kwh / 1000 ELSE 0 END) AS negative_mwh
FROM core.energy_hours AS e
INNER JOIN ref.turbines AS t
  ON e.turbine = t.turbine
LEFT JOIN stg.prices AS p
  ON t.area = p.area AND e.hour = p.hour
WHERE
  CAST(e.hour AS DATE) BETWEEN @start_ds AND @end_ds
GROUP BY
  e.turbine,
  t.site,
  CAST(e.hour AS DATE)
