MODEL (
  name mart.overview,
  kind FULL
);

SELECT
  CASE WHEN GROUPING(s.faculty) = 1 THEN 'all' ELSE s.faculty END AS faculty,
  CASE WHEN GROUPING(s.program) = 1 THEN 'all' ELSE s.program END AS program,
  COUNT(*) AS students,
  COUNT(DISTINCT CASE WHEN s.international THEN s.student_id END) AS international
FROM stg.students AS s
GROUP BY
  GROUPING SETS (
    (s.faculty, s.program),
    (s.faculty),
    ()
  )
