MODEL (
  name fleet.riders,
  kind SCD_TYPE_2_BY_TIME (
    unique_key rider_id,
    invalidate_hard_deletes false
  ),
  grain (rider_id, valid_from),
  audits (not_null(columns := (rider_id)))
);

SELECT
  r.rider_id,
  SHA2(REGEXP_REPLACE(r.phone, '[^0-9+]', ''), 256) AS phone_hash,
  YEAR(r.birth_date) AS birth_year,
  r.plan,
  r.city,
  r.updated_at
FROM app.riders AS r
