MODEL (
  name care.length_of_stay,
  kind FULL,
  description 'Nights per inpatient stay; a stay that ends on its first day counts as one.',
  grain visit_id,
  audits (
    NIGHTS_POSITIVE(column := nights)
  )
);

SELECT
  v.visit_id,
  v.patient_id,
  v.ward,
  v.admitted_on,
  GREATEST(1, DATEDIFF(COALESCE(CAST(v.discharged_at AS DATE), v.admitted_on), v.admitted_on)) AS nights,
  v.charge
FROM care.visits AS v
WHERE
  v.visit_class = 'inpatient'
