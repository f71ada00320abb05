MODEL (
  name core.grants,
  kind FULL
);

SELECT
  u.student_id,
  u.sponsor,
  u.year,
  u.quarter,
  u.paid
FROM fin.grants AS g
UNPIVOT INCLUDE NULLS (paid FOR quarter IN (q1 AS first, q2 AS second, q3 AS third)) AS u
