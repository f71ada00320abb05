MODEL (
  name fleet.battery_hours,
  kind INCREMENTAL_BY_TIME_RANGE (time_column hour, lookback 6),
  cron '@hourly',
  allow_partials true,
  partitioned_by hour,
  grain (scooter_id, hour),
  audits (unique_combination_of_columns(columns := (scooter_id, hour)))
);

SELECT
  p.scooter_id,
  DATE_TRUNC('HOUR', p.sent_at) AS hour,
  MIN_BY(p.battery, p.sent_at) AS battery_first,
  MAX_BY(p.battery, p.sent_at) AS battery_last,
  MIN(p.battery) AS battery_min,
  COUNT(*) AS pings,
  COUNT_IF(p.battery < @low_battery) AS low_pings,
  SORT_ARRAY(COLLECT_SET(p.first_error)) AS errors
FROM fleet.pings AS p
WHERE p.sent_at BETWEEN @start_ts AND @end_ts
GROUP BY p.scooter_id, DATE_TRUNC('HOUR', p.sent_at)
