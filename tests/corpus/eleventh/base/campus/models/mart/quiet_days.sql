MODEL (
  name mart.quiet_days,
  kind FULL,
  grain day
);

WITH days AS (
  @DATE_SPINE('day', '2024-01-01', '2024-12-31')
)
SELECT
  d.date_day AS day,
  COUNT(p.student_id) AS students,
  COALESCE(SUM(p.swipes), 0) AS swipes
FROM days AS d
LEFT JOIN core.presence AS p
  ON d.date_day = p.day
GROUP BY
  d.date_day
