MODEL (
  name core.order_log,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column order_date,
    forward_only TRUE,
    on_destructive_change IGNORE,
    on_additive_change IGNORE
  ),
  table_format iceberg,
  partitioned_by order_date,
  grain order_id,
  audits (
    NOT_NULL(columns := (order_id)),
    UNIQUE_VALUES(columns := (order_id))
  )
);

SELECT
  o.order_id,
  o.order_date,
  o.status,
  o.amount
FROM stg.orders AS o
WHERE
  o.order_date BETWEEN @start_date AND @end_date
