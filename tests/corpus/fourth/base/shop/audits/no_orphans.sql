AUDIT (
  name no_orphans,
  standalone TRUE
);

SELECT
  o.order_id
FROM stg.orders AS o
LEFT JOIN stg.customers AS c
  ON o.customer_id = c.customer_id
WHERE
  c.customer_id IS NULL
