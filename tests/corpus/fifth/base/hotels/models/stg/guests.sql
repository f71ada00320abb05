MODEL (
  name stg.guests,
  kind VIEW,
  grain guest_id,
  audits (
    NOT_NULL(columns := (guest_id)),
    UNIQUE_VALUES(columns := (guest_id))
  )
);

SELECT
  CAST(g.guest_id AS BIGINT) AS guest_id,
  CAST(g.full_name AS STRING) AS full_name,
  CAST(g.country AS STRING) AS country,
  CAST(g.level AS STRING) AS level,
  CAST(g.updated_at AS TIMESTAMP) AS updated_at
FROM raw.guests AS g
