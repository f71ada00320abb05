MODEL (
  name core.current_enrolments,
  kind FULL,
  grain enrolment_id,
  audits (
    NOT_NULL(columns := (enrolment_id)),
    UNIQUE_VALUES(columns := (enrolment_id)),
    ACCEPTED_VALUES(column := status, is_in := ('enrolled', 'completed', 'withdrawn'))
  )
);

WITH ordered AS (
  SELECT
    e.*,
    ROW_NUMBER() OVER (PARTITION BY e.enrolment_id ORDER BY CAST(e.version AS INT) DESC, e.changed_on DESC, e.status) AS rn
  FROM stg.enrolments AS e
)
SELECT
  o.enrolment_id,
  o.student_id,
  o.course_code,
  o.term,
  o.status,
  o.changed_on
FROM ordered AS o
WHERE
  o.rn = 1 AND o.status <> 'void'
