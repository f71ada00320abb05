MODEL (
  name stg.scans,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column scanned_on,
    lookback 3
  ),
  partitioned_by (scanned_on),
  grain scan_id,
  audits (
    UNIQUE_VALUES(columns := (scan_id)),
    NOT_NULL(columns := (scan_id, ticket_no))
  )
);

SELECT
  CAST(s.scan_id AS BIGINT) AS scan_id,
  UPPER(TRIM(s.ticket_no)) AS ticket_no,
  s.gate,
  s.direction,
  CAST(s.scanned_at AS TIMESTAMP) AS scanned_at,
  @local_day(s.scanned_at) AS scanned_on
FROM gates.scans AS s
WHERE
  @local_day(s.scanned_at) BETWEEN @start_ds AND @end_ds
QUALIFY
  ROW_NUMBER() OVER (PARTITION BY s.scan_id ORDER BY s.received_at DESC) = 1
