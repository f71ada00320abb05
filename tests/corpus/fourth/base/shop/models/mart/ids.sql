MODEL (
  name mart.ids,
  kind FULL,
  grain customer_id,
  audits (
    NOT_NULL(columns := (customer_id)),
    UNIQUE_VALUES(columns := (customer_id))
  )
);

SELECT
  COALESCE(c.customer_id, f.customer_id) AS customer_id,
  c.customer_name,
  f.amount
FROM stg.customers AS c
FULL OUTER JOIN core.customer_facts AS f
  ON c.customer_id = f.customer_id
