MODEL (
  name stg.customers,
  kind FULL,
  grain customer_id,
  audits (
    NOT_NULL(columns := (customer_id)),
    UNIQUE_VALUES(columns := (customer_id))
  )
);

SELECT
  CAST(c.customer_id AS BIGINT) AS customer_id,
  TRIM(c.full_name) AS customer_name,
  c.email AS email,
  UPPER(c.country) AS country,
  CAST(c.updated_at AS TIMESTAMP) AS updated_at
FROM raw.customers AS c
