MODEL (
  name mart.study_pairs,
  kind VIEW,
  grain (student_a, student_b)
);

SELECT
  a.student_id AS student_a,
  b.student_id AS student_b,
  COUNT(DISTINCT a.course_code, a.term) AS shared_courses
FROM core.current_enrolments AS a
INNER JOIN core.current_enrolments AS b
  ON a.course_code = b.course_code AND a.term = b.term AND a.student_id < b.student_id
GROUP BY
  a.student_id,
  b.student_id
HAVING
  COUNT(DISTINCT a.course_code, a.term) > 1
