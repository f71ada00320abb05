MODEL (
  name core.depot_daily,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column day,
    lookback 3
  ),
  partitioned_by (day),
  grain (day, depot_code),
  audits (
    NOT_NULL(columns := (day, depot_code)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (day, depot_code))
  )
);

SELECT
  s.scanned_on AS day,
  s.depot_code,
  COUNT(*) AS scans,
  COUNT(DISTINCT s.parcel_id) AS parcels,
  SUM(CASE WHEN s.event = 'DAMAGED' THEN 1 ELSE 0 END) AS damaged,
  COUNT(DISTINCT s.parcel_id) / MAX(d.capacity) AS load_factor
FROM stg.scans AS s
JOIN ref.depots AS d ON d.depot_code = s.depot_code
WHERE s.scanned_on BETWEEN @start_ds AND @end_ds
GROUP BY s.scanned_on, s.depot_code
