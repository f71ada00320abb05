MODEL (
  name freight_int.customer_groups,
  kind EMBEDDED
);

SELECT
  c.customer_id,
  c.group_id,
  g.name AS group_name
FROM freight_stg.customers AS c
INNER JOIN freight_stg.customers AS g
  ON g.customer_id = c.group_id
