MODEL (
  name core.work_orders,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key order_id
  ),
  cron '@daily',
  table_format iceberg,
  grain order_id,
  audits (
    NOT_NULL(columns := (order_id)),
    UNIQUE_VALUES(columns := (order_id))
  )
);

SELECT
  w.order_id,
  w.turbine,
  w.kind,
  w.opened_at,
  w.closed_at,
  w.cost,
  SIZE(ARRAY_DISTINCT(w.crew)) AS people,
  AGGREGATE(MAP_VALUES(w.parts), 0, (total, n) -> total + COALESCE(n, 0)) AS parts_used,
  NOT w.closed_at IS NULL AS closed
FROM ops.work_orders AS w
WHERE
  COALESCE(w.closed_at, w.opened_at) BETWEEN @start_ts AND @end_ts AND NOT w.order_id IS NULL
