MODEL (
  name stg.orders,
  kind INCREMENTAL_BY_UNIQUE_KEY (unique_key order_id, lookback 3),
  table_format iceberg,
  partitioned_by (MONTH(ordered_on)),
  grain order_id,
  audits (not_null(columns := (order_id)), unique_values(columns := (order_id)))
);

SELECT o.order_id, o.customer_id, o.part_no, o.qty, o.price, o.status, o.ordered_on, o.due_on, o.tags, o.updated_at
FROM raw.orders AS o
WHERE o.updated_at BETWEEN @start_ts AND @end_ts
