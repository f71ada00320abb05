MODEL (
  name mart.rankings,
  kind FULL,
  grain student_id
);

SELECT
  s.student_id,
  s.faculty,
  s.program,
  a.average,
  RANK() OVER (PARTITION BY s.faculty, s.program ORDER BY a.average DESC NULLS LAST) AS place,
  PERCENT_RANK() OVER (PARTITION BY s.faculty ORDER BY a.average) AS share_below,
  a.credits_passed / SUM(a.credits_passed) OVER (PARTITION BY s.faculty) AS share_of_credits,
  FLOOR(MONTHS_BETWEEN(s.admitted_on, s.birth_date) / 12) AS age_at_admission
FROM stg.students AS s
LEFT JOIN mart.averages AS a
  ON s.student_id = a.student_id
