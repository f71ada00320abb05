MODEL (
  name stg.clients,
  kind VIEW,
  grain client_id,
  audits (
    UNIQUE_VALUES(columns := (client_id))
  )
);

SELECT
  c.client_id,
  c.client_name,
  COALESCE(c.parent_id, c.client_id) AS group_id,
  LOWER(c.industry) AS industry,
  UPPER(c.country) AS country,
  c.currency,
  c.credit_limit,
  COALESCE(c.is_blocked, FALSE) AS is_blocked,
  c.updated_at
FROM crm.clients AS c
