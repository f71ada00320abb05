MODEL (
  name stg.owners,
  kind FULL,
  description 'Owners without what identifies them.',
  grain owner_id,
  audits (UNIQUE_VALUES(columns := (owner_id)), NOT_NULL(columns := (owner_id)))
);

SELECT
  o.owner_id,
  SHA2(CONCAT(LOWER(o.email), '|', o.phone), 256) AS contact_hash,
  SUBSTRING(o.postcode, 1, 2) AS region,
  o.country,
  COALESCE(o.deceased, FALSE) AS is_deceased,
  o.updated_at
FROM pms.owners AS o
