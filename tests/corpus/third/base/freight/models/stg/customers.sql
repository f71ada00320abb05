MODEL (
  name freight_stg.customers,
  kind VIEW,
  grain customer_id
);

SELECT
  c.customer_id,
  c.name,
  c.country,
  c.credit_limit,
  COALESCE(c.parent_id, c.customer_id) AS group_id
FROM erp.customers AS c
