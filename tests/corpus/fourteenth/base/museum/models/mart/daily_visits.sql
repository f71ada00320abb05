MODEL (
  name mart.daily_visits,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column day,
    lookback 3
  ),
  partitioned_by (day),
  grain (day, gate),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (day, gate)),
    NOT_NULL(columns := (day, gate))
  )
);

SELECT
  s.scanned_on AS day,
  s.gate,
  COUNT_IF(s.direction = 'IN') AS entries,
  COUNT(DISTINCT s.ticket_no) AS tickets
FROM stg.scans AS s
WHERE
  s.scanned_on BETWEEN @start_ds AND @end_ds
GROUP BY
  s.scanned_on,
  s.gate
