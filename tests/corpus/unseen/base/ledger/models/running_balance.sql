MODEL (
  name gl.running_balance,
  kind FULL,
  description 'Balance of an account after each of its booking days.',
  grain (account_no, booked_on)
);

WITH days AS (
  SELECT
    ph.account_no,
    ph.booked_on,
    SUM(ph.amount_home) AS movement
  FROM gl.postings_home AS ph
  GROUP BY
    ph.account_no,
    ph.booked_on
)
SELECT
  d.account_no,
  d.booked_on,
  d.movement,
  SUM(d.movement) OVER (PARTITION BY d.account_no ORDER BY d.booked_on ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS balance
FROM days AS d
