MODEL (
  name mart.status_log,
  kind FULL
);

SELECT
  e.enrolment_id,
  e.student_id,
  @STATUS_GROUP(e.status) AS status_group,
  @GENERATE_SURROGATE_KEY(e.student_id, e.course_code, e.term) AS place_key,
  @SAFE_DIV(c.credits, c.capacity) AS credit_density,
  t.starts_on,
  DATEDIFF(t.starts_on, e.changed_on) AS days_before_start
FROM stg.enrolments AS e
LEFT JOIN stg.courses AS c
  ON e.course_code = c.course_code AND e.term = c.term
LEFT JOIN ref.terms AS t
  ON e.term = t.term
WHERE
  @AND(NOT e.status IS NULL, e.student_id > 0)
