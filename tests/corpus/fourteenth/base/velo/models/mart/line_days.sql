MODEL (
  name mart.line_days,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column day,
    lookback 1
  ),
  partitioned_by (day),
  grain (day, line),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (day, line)),
    NOT_NULL(columns := (day, line))
  )
);

SELECT
  s.scanned_on AS day,
  t.line,
  COUNT_IF(s.event = 'DONE') AS done,
  COUNT_IF(s.event = 'SCRAP') AS scrapped
FROM stg.scans AS s
JOIN ref.stations AS t
  ON t.station = s.station
WHERE
  s.scanned_on BETWEEN @start_ds AND @end_ds
GROUP BY
  s.scanned_on,
  t.line
