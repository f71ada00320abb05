MODEL (
  name sales.revenue,
  kind FULL,
  grain segment,
  audits (
    NOT_NULL(columns := (
      segment
    ))
  )
);

SELECT
  CAST(customers.segment AS STRING) AS segment,
  CAST(SUM(orders.amount) AS BIGINT) AS revenue
FROM sales.orders AS orders
JOIN sales.customers AS customers
  ON customers.customer_id = orders.customer_id
GROUP BY
  customers.segment
