MODEL (
  name stg.orders,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column order_date
  ),
  table_format iceberg,
  partitioned_by order_date,
  grain order_id,
  audits (
    NOT_NULL(columns := (order_id, customer_id, order_date)),
    UNIQUE_VALUES(columns := (order_id)),
    amount_not_negative
  )
);

SELECT
  CAST(o.order_id AS BIGINT) AS order_id,
  CAST(o.customer_id AS BIGINT) AS customer_id,
  CAST(o.ordered_at AS DATE) AS order_date,
  CAST(o.ordered_at AS TIMESTAMP) AS ordered_at,
  CAST(o.amount AS DECIMAL(12, 2)) AS amount,
  o.status AS status
FROM raw.orders AS o
WHERE
  CAST(o.ordered_at AS DATE) BETWEEN @start_date AND @end_date
