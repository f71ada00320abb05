MODEL (
  name core.order_daily,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column order_date
  ),
  table_format iceberg,
  partitioned_by order_date,
  signals (
    orders_are_loaded(hours := 6)
  ),
  grain order_date,
  audits (
    NOT_NULL(columns := (order_date)),
    UNIQUE_VALUES(columns := (order_date))
  )
);

SELECT
  o.order_date,
  COUNT(*) AS orders,
  SUM(@net(o.amount)) AS net_amount
FROM stg.orders AS o
WHERE
  o.order_date BETWEEN @start_date AND @end_date
GROUP BY
  o.order_date
