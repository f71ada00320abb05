MODEL (
  name stg.scans,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column scanned_on,
    lookback 1,
    batch_size 31
  ),
  partitioned_by (scanned_on),
  grain scan_id,
  audits (
    UNIQUE_VALUES(columns := (scan_id)),
    NOT_NULL(columns := (scan_id, frame_no, station))
  )
);

SELECT
  CAST(s.scan_id AS BIGINT) AS scan_id,
  UPPER(s.frame_no) AS frame_no,
  CAST(s.wo_id AS BIGINT) AS wo_id,
  s.station,
  s.event,
  CAST(s.scanned_at AS TIMESTAMP) AS scanned_at,
  CAST(s.scanned_at AS DATE) AS scanned_on
FROM mes.scans AS s
WHERE
  s.scanned_at >= @start_ts AND s.scanned_at < @end_ts
QUALIFY
  ROW_NUMBER() OVER (PARTITION BY s.scan_id ORDER BY s.loaded_at DESC) = 1
