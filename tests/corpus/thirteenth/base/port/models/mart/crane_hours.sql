MODEL (
  name mart.crane_hours,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column hour,
    lookback 6
  ),
  cron '@hourly',
  owner terminal_data,
  grain (hour, crane),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (hour, crane)),
    NOT_NULL(columns := (hour, crane))
  )
);

SELECT
  DATE_TRUNC('HOUR', m.moved_at) AS hour,
  m.crane,
  COUNT(*) AS moves,
  SUM(m.weight_kg) / 1000 AS tonnes
FROM stg.moves AS m
WHERE
  m.moved_at BETWEEN @start_ts AND @end_ts
GROUP BY
  1,
  2
