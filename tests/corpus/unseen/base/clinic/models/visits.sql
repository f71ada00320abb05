MODEL (
  name care.visits,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column admitted_on,
    batch_size 31,
    lookback 7
  ),
  partitioned_by (admitted_on),
  grain visit_id,
  audits (
    NOT_NULL(columns := (visit_id, patient_id, admitted_on)),
    UNIQUE_VALUES(columns := (visit_id))
  )
);

WITH latest AS (
  SELECT
    v.visit_id,
    v.patient_id,
    v.site_id,
    v.payer,
    v.ward,
    v.visit_class,
    v.admitted_at,
    v.discharged_at,
    v.charge,
    ROW_NUMBER() OVER (PARTITION BY v.visit_id ORDER BY v.loaded_at DESC) AS rn
  FROM emr.visits AS v
  WHERE
    CAST(v.admitted_at AS DATE) BETWEEN @start_ds AND @end_ds
)
SELECT
  CAST(visit_id AS BIGINT) AS visit_id,
  CAST(patient_id AS BIGINT) AS patient_id,
  CAST(site_id AS INT) AS site_id,
  LOWER(payer) AS payer,
  UPPER(ward) AS ward,
  CAST(visit_class AS STRING) AS visit_class,
  CAST(admitted_at AS TIMESTAMP) AS admitted_at,
  CAST(discharged_at AS TIMESTAMP) AS discharged_at,
  CAST(charge AS DECIMAL(12, 2)) AS charge,
  CAST(admitted_at AS DATE) AS admitted_on
FROM latest
WHERE
  rn = 1
