MODEL (
  name hist.pets,
  kind SCD_TYPE_2_BY_COLUMN (
    unique_key pet_id,
    columns (owner_id, weight_kg),
    invalidate_hard_deletes FALSE,
    time_data_type TIMESTAMP
  ),
  grain (pet_id, valid_from),
  audits (NOT_NULL(columns := (pet_id)))
);

SELECT
  p.pet_id,
  p.owner_id,
  p.species,
  p.weight_kg
FROM stg.pets AS p
