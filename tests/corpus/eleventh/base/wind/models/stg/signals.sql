MODEL (
  name stg.signals,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column ts,
    lookback 3,
    batch_size 72
  ),
  cron '@hourly',
  partitioned_by (HOURS(ts)),
  table_format iceberg,
  grain (turbine, ts),
  audits (
    NOT_NULL(columns := (turbine, ts)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (turbine, ts)),
    power_in_range(most := 5000)
  )
);

WITH numbered AS (
  SELECT
    s.turbine,
    s.ts,
    s.power_kw,
    s.wind_ms,
    s.direction,
    s.state,
    s.alarms,
    ROW_NUMBER() OVER (PARTITION BY s.turbine, s.ts ORDER BY s.received_at DESC, s.power_kw DESC) AS rn
  FROM scada.signals AS s
  WHERE
    s.ts BETWEEN @start_ts AND @end_ts
)
SELECT
  n.turbine,
  n.ts,
  GREATEST(n.power_kw, 0) AS power_kw,
  n.wind_ms,
  n.direction,
  COALESCE(n.state, 'unknown') AS state,
  TRANSFORM(SPLIT(n.alarms, ','), a -> TRIM(a)) AS alarms
FROM numbered AS n
WHERE
  n.rn = 1
