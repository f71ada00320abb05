MODEL (
  name mart.debtors,
  kind VIEW,
  grain student_id
);

SELECT
  c.student_id,
  COUNT(*) AS charges,
  SUM(c.open) AS open,
  MIN(c.due_on) AS oldest_due
FROM core.charges AS c
GROUP BY
  c.student_id
HAVING
  SUM(c.open) > 0
