MODEL (
  name mart.donor_value,
  kind FULL,
  grain donor_id,
  audits (
    UNIQUE_VALUES(columns := (donor_id)),
    NOT_NULL(columns := (donor_id))
  )
);

WITH given AS (
  SELECT
    d.donor_id,
    COUNT(*) AS donations,
    MIN(d.donated_on) AS first_on,
    MAX(d.donated_on) AS last_on
  FROM stg.donations AS d
  GROUP BY
    d.donor_id
)
SELECT
  p.donor_id,
  p.blood_group,
  COALESCE(g.donations, 0) AS donations,
  g.first_on,
  g.last_on
FROM stg.donors AS p
LEFT JOIN given AS g
  ON g.donor_id = p.donor_id
