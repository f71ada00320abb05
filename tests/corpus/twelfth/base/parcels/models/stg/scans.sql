MODEL (
  name stg.scans,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column scanned_on,
    lookback 3,
    batch_size 14
  ),
  partitioned_by (scanned_on),
  grain scan_id,
  description 'Scans without the copies that depots resend.',
  audits (
    UNIQUE_VALUES(columns := (scan_id)),
    NOT_NULL(columns := (scan_id, parcel_id, scanned_at))
  )
);

WITH latest AS (
  SELECT
    s.scan_id,
    s.parcel_id,
    s.depot_code,
    s.event,
    s.scanned_at,
    s.loaded_at,
    ROW_NUMBER() OVER (PARTITION BY s.scan_id ORDER BY s.loaded_at DESC) AS copy_no
  FROM raw.scans AS s
  WHERE CAST(s.scanned_at AS DATE) BETWEEN @start_ds AND @end_ds
    AND s.event <> 'TEST'
)
SELECT
  scan_id,
  CAST(parcel_id AS BIGINT) AS parcel_id,
  UPPER(TRIM(depot_code)) AS depot_code,
  event,
  scanned_at,
  CAST(scanned_at AS DATE) AS scanned_on
FROM latest
WHERE copy_no = 1
