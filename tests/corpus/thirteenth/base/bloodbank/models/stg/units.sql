MODEL (
  name stg.units,
  kind FULL,
  grain unit_id,
  audits (
    UNIQUE_VALUES(columns := (unit_id)),
    NOT_NULL(columns := (unit_id, donation_id))
  )
);

SELECT
  CAST(u.unit_id AS BIGINT) AS unit_id,
  CAST(u.donation_id AS BIGINT) AS donation_id,
  UPPER(u.component) AS component,
  CAST(u.expires_on AS DATE) AS expires_on,
  u.state,
  u.location,
  CAST(u.updated_at AS TIMESTAMP) AS updated_at
FROM erp.units AS u
