MODEL (
  name stg.pets,
  kind VIEW,
  grain pet_id
);

SELECT
  p.pet_id,
  p.owner_id,
  UPPER(TRIM(p.species)) AS species,
  p.breed,
  p.born_on,
  p.died_on,
  p.weight_kg,
  p.updated_at
FROM pms.pets AS p
