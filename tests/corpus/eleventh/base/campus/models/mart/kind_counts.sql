MODEL (
  name mart.kind_counts,
  kind FULL,
  grain student_id
);

SELECT
  c.student_id,
  @PIVOT(c.kind, ['tuition', 'housing', 'library'], agg := 'SUM', then_value := c.amount, else_value := 0, suffix := '_amount')
FROM core.charges AS c
GROUP BY
  c.student_id
