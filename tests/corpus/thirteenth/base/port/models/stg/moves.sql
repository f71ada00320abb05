MODEL (
  name stg.moves,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column (moved_at, 'yyyy-MM-dd HH:mm:ss'),
    lookback 6,
    batch_size 168,
    forward_only FALSE
  ),
  cron '@hourly',
  owner terminal_data,
  partitioned_by (DATE_TRUNC('DAY', moved_at)),
  grain move_id,
  audits (
    UNIQUE_VALUES(columns := (move_id)),
    NOT_NULL(columns := (move_id, call_id, container_no))
  )
);

SELECT
  m.move_id,
  m.call_id,
  UPPER(m.container_no) AS container_no,
  m.move_type,
  m.crane,
  CAST(m.moved_at AS TIMESTAMP) AS moved_at,
  m.weight_kg
FROM @{landing}.moves AS m
WHERE
  m.moved_at BETWEEN @start_ts AND @end_ts
QUALIFY
  ROW_NUMBER() OVER (PARTITION BY m.move_id ORDER BY m.landed_at DESC) = 1
