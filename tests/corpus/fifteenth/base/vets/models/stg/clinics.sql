MODEL (
  name stg.clinics,
  kind FULL,
  grain clinic_id,
  audits (UNIQUE_VALUES(columns := (clinic_id)), NOT_NULL(columns := (clinic_id, country)))
);

SELECT
  c.clinic_id,
  c.clinic_name,
  UPPER(c.country) AS country,
  c.opened_on
FROM pms.clinics AS c
