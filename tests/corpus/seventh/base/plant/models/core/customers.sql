MODEL (
  name core.customers,
  kind FULL,
  grain customer_id,
  audits (not_null(columns := (customer_id)), unique_values(columns := (customer_id)))
);

SELECT c.customer_id, c.name, c.country, CONCAT_WS('-', c.country, c.region) AS area
FROM raw.customers AS c
WHERE NOT EXISTS (SELECT 1 FROM raw.blocked AS b WHERE b.customer_id = c.customer_id)
