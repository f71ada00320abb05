MODEL (
  name stg.swipes,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column swiped_at,
    lookback 6
  ),
  cron '@hourly',
  partitioned_by (HOURS(swiped_at)),
  table_format iceberg,
  audits (
    NOT_NULL(columns := (card_no, swiped_at))
  )
);

SELECT
  LPAD(TRIM(w.card_no), 8, '0') AS card_no,
  TRANSLATE(w.building, '-_', '') AS building,
  w.flags,
  w.swiped_at,
  FROM_UTC_TIMESTAMP(w.swiped_at, 'Europe/Warsaw') AS swiped_local
FROM gate.swipes AS w
WHERE
  w.swiped_at BETWEEN @start_ts AND @end_ts AND w.flags & 6 = 6
