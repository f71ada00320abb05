MODEL (
  name mart.zone_days,
  kind INCREMENTAL_BY_TIME_RANGE (time_column day, lookback 1),
  partitioned_by day,
  grain (zone_id, day),
  audits (unique_combination_of_columns(columns := (zone_id, day)))
);

SELECT
  z.zone_id,
  CAST(z.sent_at AS DATE) AS day,
  COUNT(DISTINCT z.scooter_id) AS scooters,
  APPROX_COUNT_DISTINCT(z.scooter_id) AS scooters_about,
  COUNT(*) AS pings
FROM fleet.zone_of AS z
WHERE z.sent_at BETWEEN @start_ts AND @end_ts
GROUP BY z.zone_id, CAST(z.sent_at AS DATE)
