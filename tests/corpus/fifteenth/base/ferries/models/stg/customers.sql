MODEL (
  name stg.customers,
  kind FULL,
  grain customer_id,
  audits (
    UNIQUE_VALUES(columns := (customer_id)),
    NOT_NULL(columns := (customer_id))
  )
);

SELECT
  c.customer_id,
  SHA2(LOWER(TRIM(c.email)), 256) AS email_hash,
  UPPER(c.country) AS country,
  YEAR(c.birth_date) AS birth_year,
  c.newsletter,
  c.updated_at
FROM crm.customers AS c
