MODEL (
  name care.diagnoses,
  kind FULL,
  grain diagnosis_key,
  audits (
    NOT_NULL(columns := (diagnosis_key, visit_id))
  )
);

SELECT
  CONCAT_WS('|', CAST(d.visit_id AS STRING), COALESCE(d.code_system, 'unknown'), d.code) AS diagnosis_key,
  d.visit_id,
  d.code_system,
  REPLACE(d.code, '.', '') AS code,
  MIN(d.position) AS position,
  MIN(d.noted_at) AS first_noted_at
FROM emr.diagnoses AS d
WHERE
  NOT d.code IS NULL
GROUP BY
  CONCAT_WS('|', CAST(d.visit_id AS STRING), COALESCE(d.code_system, 'unknown'), d.code),
  d.visit_id,
  d.code_system,
  REPLACE(d.code, '.', '')
