MODEL (
  name core.assignment_days,
  kind FULL,
  description 'Each calendar day of an assignment up to the last day for which there are sheets.',
  grain (assignment_id, day),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (assignment_id, day)),
    NOT_NULL(columns := (assignment_id, day))
  )
);

WITH last_day AS (
  SELECT
    MAX(s.work_date) AS last_date
  FROM stg.sheets AS s
), spans AS (
  SELECT
    a.assignment_id,
    a.client_id,
    a.candidate_id,
    a.starts_on,
    LEAST(COALESCE(a.ends_on, d.last_date), d.last_date) AS until
  FROM stg.assignments AS a
  CROSS JOIN last_day AS d
  WHERE
    a.status <> 'cancelled'
)
SELECT
  s.assignment_id,
  s.client_id,
  s.candidate_id,
  EXPLODE(SEQUENCE(s.starts_on, s.until, INTERVAL '1' DAY)) AS day
FROM spans AS s
WHERE
  s.starts_on <= s.until
