/* One order per customer and day; a real project reads the shop's tables here. */
MODEL (
  name sales.orders,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column order_date,
    batch_size 30
  ),
  grain (customer_id, order_date),
  audits (
    NOT_NULL(columns := (
      customer_id,
      order_date
    ))
  )
);

SELECT
  CAST(customers.customer_id AS INT) AS customer_id,
  CAST(days.order_date AS DATE) AS order_date,
  CAST(customers.customer_id * 10 AS INT) AS amount
FROM sales.customers AS customers
CROSS JOIN (
  SELECT
    EXPLODE(SEQUENCE(CAST(@start_ds AS DATE), CAST(@end_ds AS DATE))) AS order_date
) AS days
WHERE
  days.order_date BETWEEN @start_ds AND @end_ds
