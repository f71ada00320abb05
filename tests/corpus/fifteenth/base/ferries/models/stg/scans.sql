MODEL (
  name stg.scans,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column scanned_at,
    lookback 48,
    batch_size 168
  ),
  cron '@hourly',
  partitioned_by (DATE_TRUNC('DAY', scanned_at)),
  grain scan_id,
  signals (
    gate_delivered(minutes := 20)
  ),
  audits (
    UNIQUE_VALUES(columns := (scan_id)),
    NOT_NULL(columns := (scan_id, ticket_id))
  )
);

SELECT DISTINCT
  s.scan_id,
  s.ticket_id,
  s.gate,
  s.scanned_at
FROM gate.scans AS s
WHERE
  s.scanned_at BETWEEN @start_ts AND @end_ts
