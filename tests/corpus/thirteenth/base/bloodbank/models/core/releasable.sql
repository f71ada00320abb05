MODEL (
  name core.releasable,
  kind FULL,
  grain unit_id,
  description 'Units whose assays are all negative.',
  audits (
    UNIQUE_VALUES(columns := (unit_id)),
    NOT_NULL(columns := (unit_id))
  )
);

WITH cleared AS (
  SELECT
    r.donation_id
  FROM stg.results AS r
  GROUP BY
    r.donation_id
  HAVING
    SUM(CASE WHEN r.outcome = 'NEG' THEN 0 ELSE 1 END) = 0 AND COUNT(*) >= 5
)
SELECT
  u.unit_id,
  u.donation_id,
  u.component,
  u.expires_on,
  u.location
FROM stg.units AS u
JOIN cleared AS c
  ON c.donation_id = u.donation_id
WHERE
  u.state = 'STORED'
