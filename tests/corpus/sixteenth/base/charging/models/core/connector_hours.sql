MODEL (
  name core.connector_hours,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column hour_at,
    lookback 72,
    batch_size 168
  ),
  cron '@hourly',
  partitioned_by (DATE_TRUNC('DAY', hour_at)),
  grain (connector_id, hour_at),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (connector_id, hour_at)),
    NOT_NULL(columns := (connector_id, hour_at))
  )
);

SELECT
  m.connector_id,
  DATE_TRUNC('HOUR', m.sampled_at) AS hour_at,
  COUNT(*) AS samples,
  MAX(m.power_w) AS peak_w,
  AVG(m.power_w) AS avg_w,
  MAX(m.energy_wh) - MIN(m.energy_wh) AS energy_wh
FROM stg.meter_values AS m
WHERE
  m.sampled_at BETWEEN @start_ts AND @end_ts
GROUP BY
  m.connector_id,
  DATE_TRUNC('HOUR', m.sampled_at)
