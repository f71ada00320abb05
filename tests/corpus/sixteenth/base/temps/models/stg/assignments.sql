MODEL (
  name stg.assignments,
  kind FULL,
  description 'One row an assignment, as it is today.',
  grain assignment_id,
  audits (
    UNIQUE_VALUES(columns := (assignment_id)),
    NOT_NULL(columns := (assignment_id, client_id, candidate_id, starts_on)),
    ACCEPTED_VALUES(column := status, is_in := ('planned', 'active', 'ended', 'cancelled'))
  )
);

WITH ranked AS (
  SELECT
    a.assignment_id,
    a.candidate_id,
    a.client_id,
    a.role_code,
    a.starts_on,
    a.ends_on,
    a.bill_rate,
    a.pay_rate,
    a.currency,
    a.status,
    a.changed_at,
    ROW_NUMBER() OVER (PARTITION BY a.assignment_id ORDER BY a.changed_at DESC) AS rn
  FROM ats.assignments AS a
)
SELECT
  r.assignment_id,
  r.candidate_id,
  r.client_id,
  UPPER(r.role_code) AS role_code,
  r.starts_on,
  r.ends_on,
  r.bill_rate,
  r.pay_rate,
  r.currency,
  LOWER(r.status) AS status,
  r.changed_at
FROM ranked AS r
WHERE
  r.rn = 1
