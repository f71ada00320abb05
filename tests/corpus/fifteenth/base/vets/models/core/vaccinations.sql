MODEL (
  name core.vaccinations,
  kind FULL,
  grain shot_id,
  audits (UNIQUE_VALUES(columns := (shot_id)))
);

SELECT
  s.shot_id,
  s.pet_id,
  p.species,
  s.vaccine,
  s.given_on,
  DATE_ADD(s.given_on, r.repeat_days) AS due_on,
  LEAD(s.given_on) OVER (PARTITION BY s.pet_id, s.vaccine ORDER BY s.given_on, s.shot_id) AS next_given_on,
  ROW_NUMBER() OVER (PARTITION BY s.pet_id, s.vaccine ORDER BY s.given_on DESC, s.shot_id DESC) = 1 AS is_latest
FROM pms.shots AS s
INNER JOIN stg.pets AS p
  ON s.pet_id = p.pet_id
LEFT JOIN ref.vaccines AS r
  ON s.vaccine = r.vaccine AND p.species = r.species
