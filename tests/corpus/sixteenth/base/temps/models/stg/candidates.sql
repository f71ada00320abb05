MODEL (
  name stg.candidates,
  kind FULL,
  grain candidate_id,
  audits (
    UNIQUE_VALUES(columns := (candidate_id)),
    NOT_NULL(columns := (candidate_id))
  )
);

SELECT
  c.candidate_id,
  SHA2(LOWER(c.email), 256) AS email_hash,
  YEAR(c.birth_date) AS birth_year,
  INITCAP(TRIM(c.city)) AS city,
  LOWER(c.status) AS status,
  c.updated_at
FROM ats.candidates AS c
