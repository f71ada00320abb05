MODEL (
  name ship.depot_daily,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column scan_date,
    batch_size 14,
    lookback 1
  ),
  cron '@daily',
  partitioned_by (scan_date),
  grain (depot_id, scan_date)
);

SELECT
  s.depot_id,
  d.region,
  CAST(s.event_ts AS DATE) AS scan_date,
  COUNT(*) AS scans,
  COUNT(DISTINCT s.parcel_id) AS parcels,
  SUM(CASE WHEN s.event_type = 'DAMAGED' THEN 1 ELSE 0 END) AS damaged
FROM ship.scans AS s
LEFT JOIN ship.depots AS d
  ON s.depot_id = d.depot_id
WHERE
  CAST(s.event_ts AS DATE) BETWEEN @start_ds AND @end_ds
GROUP BY
  s.depot_id,
  d.region,
  CAST(s.event_ts AS DATE)
