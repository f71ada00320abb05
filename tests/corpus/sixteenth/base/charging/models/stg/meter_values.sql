MODEL (
  name stg.meter_values,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column sampled_at,
    lookback 72,
    batch_size 168
  ),
  cron '@hourly',
  partitioned_by (DATE_TRUNC('DAY', sampled_at)),
  grain (connector_id, sampled_at),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (connector_id, sampled_at)),
    NOT_NULL(columns := (connector_id, sampled_at, energy_wh))
  )
);

SELECT
  m.connector_id,
  m.session_id,
  m.sampled_at,
  m.power_w,
  m.energy_wh
FROM ocpp.meter_values AS m
WHERE
  m.sampled_at BETWEEN @start_ts AND @end_ts
QUALIFY
  ROW_NUMBER() OVER (PARTITION BY m.connector_id, m.sampled_at ORDER BY m.received_at DESC) = 1
