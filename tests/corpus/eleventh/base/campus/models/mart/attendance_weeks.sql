MODEL (
  name mart.attendance_weeks,
  kind FULL,
  grain (student_id, week)
);

SELECT
  p.student_id,
  CAST(DATE_TRUNC('WEEK', p.day) AS DATE) AS week,
  COUNT(*) AS days,
  SUM(p.swipes) AS swipes,
  COUNT(*) - LAG(COUNT(*), 1, 0) OVER (PARTITION BY p.student_id ORDER BY CAST(DATE_TRUNC('WEEK', p.day) AS DATE)) AS days_more
FROM core.presence AS p
GROUP BY
  p.student_id,
  CAST(DATE_TRUNC('WEEK', p.day) AS DATE)
