MODEL (
  name mart.balances,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column day,
    batch_size 1
  ),
  partitioned_by (day),
  columns (
    day DATE,
    student_id BIGINT,
    balance DECIMAL(12, 2)
  ),
  grain (day, student_id),
  audits (
    NOT_NULL(columns := (day, student_id))
  )
);

WITH moved AS (
  SELECT
    c.student_id,
    SUM(c.open) AS delta
  FROM core.charges AS c
  WHERE
    c.charged_on BETWEEN @start_ds AND @end_ds
  GROUP BY
    c.student_id
), before AS (
  SELECT
    b.student_id,
    b.balance
  FROM mart.balances AS b
  WHERE
    b.day = DATE_SUB(CAST(@start_ds AS DATE), 1)
)
SELECT
  CAST(@start_ds AS DATE) AS day,
  COALESCE(m.student_id, b.student_id) AS student_id,
  CAST(COALESCE(b.balance, 0) + COALESCE(m.delta, 0) AS DECIMAL(12, 2)) AS balance
FROM moved AS m
FULL JOIN before AS b
  ON m.student_id = b.student_id
