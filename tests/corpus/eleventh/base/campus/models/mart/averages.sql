MODEL (
  name mart.averages,
  kind FULL,
  grain student_id,
  audits (
    NOT_NULL(columns := (student_id)),
    UNIQUE_VALUES(columns := (student_id))
  )
);

WITH graded AS (
  SELECT
    r.student_id,
    r.course_code,
    r.points,
    c.credits,
    c.level
  FROM core.results AS r
  INNER JOIN stg.courses AS c
    ON r.course_code = c.course_code AND r.term = c.term
)
SELECT
  g.student_id,
  ROUND(SUM(g.points * g.credits) / SUM(g.credits) FILTER(WHERE NOT g.points IS NULL), 2) AS average,
  SUM(g.credits) FILTER(WHERE g.points >= @pass_points) AS credits_passed,
  COUNT(DISTINCT g.course_code) FILTER(WHERE g.level > 2) AS advanced_courses,
  MAX(g.level) AS highest_level
FROM graded AS g
GROUP BY
  g.student_id
