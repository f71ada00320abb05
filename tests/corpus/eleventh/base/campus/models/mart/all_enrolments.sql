MODEL (
  name mart.all_enrolments,
  kind VIEW
);

SELECT
  u.enrolment_id,
  u.student_id,
  u.course_code,
  u.status,
  u.changed_at
FROM (
  @UNION('all', sis.enrolments, sis.enrolments_archive)
) AS u
