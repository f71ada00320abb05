MODEL (
  name care.readmissions,
  kind FULL,
  description 'Inpatient stays that follow another stay of the same patient within 30 days.',
  grain visit_id
);

WITH ordered AS (
  SELECT
    v.visit_id,
    v.patient_id,
    v.admitted_at,
    LAG(v.visit_id) OVER (PARTITION BY v.patient_id ORDER BY v.admitted_at, v.visit_id) AS previous_visit_id,
    LAG(v.discharged_at) OVER (PARTITION BY v.patient_id ORDER BY v.admitted_at, v.visit_id) AS previous_discharged_at
  FROM care.visits AS v
  WHERE
    v.visit_class = 'inpatient'
)
SELECT
  o.visit_id,
  o.patient_id,
  o.previous_visit_id,
  DATEDIFF(CAST(o.admitted_at AS DATE), CAST(o.previous_discharged_at AS DATE)) AS days_between
FROM ordered AS o
WHERE
  DATEDIFF(CAST(o.admitted_at AS DATE), CAST(o.previous_discharged_at AS DATE)) BETWEEN 0 AND 30
