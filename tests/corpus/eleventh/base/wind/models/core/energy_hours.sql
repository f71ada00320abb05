MODEL (
  name core.energy_hours,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column hour,
    lookback 3,
    batch_size 168
  ),
  cron '@hourly',
  partitioned_by (HOURS(hour)),
  table_format iceberg,
  grain (turbine, hour),
  audits (
    NOT_NULL(columns := (turbine, hour)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (turbine, hour))
  )
);

SELECT
  s.turbine,
  DATE_TRUNC('HOUR', s.ts) AS hour,
  COUNT(*) AS samples,
  SUM(s.power_kw) / 6 AS energy_kwh,
  AVG(s.wind_ms) AS wind_ms,
  MOD(DEGREES(ATAN2(AVG(SIN(RADIANS(s.direction))), AVG(COS(RADIANS(s.direction))))) + 360, 360) AS direction,
  SUM(CASE WHEN s.state = 'run' THEN 1 ELSE 0 END) AS running,
  COUNT(CASE WHEN ARRAY_CONTAINS(s.alarms, 'A90') THEN 1 END) AS overheated
FROM stg.signals AS s
WHERE
  s.ts BETWEEN @start_ts AND @end_ts
GROUP BY
  s.turbine,
  DATE_TRUNC('HOUR', s.ts)
