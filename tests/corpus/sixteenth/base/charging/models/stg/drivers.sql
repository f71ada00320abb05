MODEL (
  name stg.drivers,
  kind FULL,
  description 'Drivers without what would name them.',
  grain driver_id,
  audits (
    UNIQUE_VALUES(columns := (driver_id)),
    NOT_NULL(columns := (driver_id))
  )
);

SELECT
  d.driver_id,
  SHA2(LOWER(TRIM(d.email)), 256) AS email_hash,
  LEFT(d.postcode, 2) AS postcode_area,
  UPPER(d.country) AS country,
  d.marketing_ok,
  d.updated_at
FROM crm.drivers AS d
