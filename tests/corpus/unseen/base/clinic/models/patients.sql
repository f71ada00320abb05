MODEL (
  name care.patients,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key patient_id
  ),
  grain patient_id,
  audits (
    NOT_NULL(columns := (patient_id)),
    UNIQUE_VALUES(columns := (patient_id))
  )
);

WITH latest AS (
  SELECT
    p.patient_id,
    p.birth_date,
    p.sex,
    p.postcode,
    p.updated_at,
    ROW_NUMBER() OVER (PARTITION BY p.patient_id ORDER BY p.updated_at DESC) AS rn
  FROM emr.patients AS p
  WHERE
    p.updated_at BETWEEN @start_ts AND @end_ts AND NOT p.birth_date IS NULL /* partial messages */
)
SELECT
  CAST(patient_id AS BIGINT) AS patient_id,
  CAST(birth_date AS DATE) AS birth_date,
  COALESCE(sex, 'U') AS sex,
  SUBSTRING(postcode, 1, 3) AS postcode_area,
  CAST(updated_at AS TIMESTAMP) AS updated_at
FROM latest
WHERE
  rn = 1
