MODEL (
  name core.customer_facts,
  kind FULL,
  grain customer_id,
  audits (
    NOT_NULL(columns := (customer_id)),
    UNIQUE_VALUES(columns := (customer_id))
  )
);

SELECT
  c.customer_id,
  COUNT(*) AS orders,
  SUM(o.amount) AS amount
FROM stg.customers AS c
INNER JOIN stg.orders AS o
  ON c.customer_id = o.customer_id
GROUP BY
  c.customer_id
