MODEL (
  name mart.species_mix,
  kind VIEW,
  grain (clinic_id, species)
);

SELECT
  v.clinic_id,
  p.species,
  COUNT(DISTINCT p.pet_id) AS pets,
  COUNT(*) AS visits
FROM stg.visits AS v
INNER JOIN stg.pets AS p
  ON v.pet_id = p.pet_id
GROUP BY
  v.clinic_id,
  p.species
