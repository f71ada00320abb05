MODEL (
  name core.customer_history,
  kind SCD_TYPE_2_BY_TIME (
    unique_key customer_id,
    updated_at_name updated_at,
    invalidate_hard_deletes TRUE
  ),
  table_format iceberg,
  grain (customer_id, valid_from),
  audits (
    NOT_NULL(columns := (customer_id))
  )
);

SELECT
  c.customer_id,
  c.customer_name,
  c.country,
  c.updated_at
FROM stg.customers AS c
