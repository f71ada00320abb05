MODEL (
  name freight_stg.moves,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column moved_on,
    lookback 1
  ),
  cron '@daily',
  partitioned_by (moved_on),
  grain move_id,
  audits (
    UNIQUE_VALUES(columns := (move_id)),
    ACCEPTED_VALUES(column := move_type, is_in := ('gate_in', 'load', 'discharge', 'gate_out'))
  )
);

SELECT
  m.move_id,
  UPPER(TRIM(m.container_no)) AS container_no,
  m.terminal,
  LOWER(m.move_type) AS move_type,
  m.moved_at,
  CAST(m.moved_at AS DATE) AS moved_on,
  m.reported_at
FROM tos.moves AS m
WHERE
  m.moved_at BETWEEN @start_ts AND @end_ts
