MODEL (
  name fare.settlement_check,
  kind FULL,
  description 'Taps against settlements, a row for each day that either side knows.',
  grain day
);

WITH tapped AS (
  SELECT
    t.tap_date AS day,
    SUM(t.amount_cents) / 100 AS tapped_amount
  FROM fare.taps AS t
  WHERE
    t.status = 'accepted'
  GROUP BY
    t.tap_date
), settled AS (
  SELECT
    s.settled_on AS day,
    SUM(s.amount) AS settled_amount
  FROM fare.settlements AS s
  WHERE
    s.settlement_status = 'SETTLED'
  GROUP BY
    s.settled_on
)
SELECT
  COALESCE(tapped.day, settled.day) AS day,
  COALESCE(tapped.tapped_amount, 0) AS tapped_amount,
  COALESCE(settled.settled_amount, 0) AS settled_amount
FROM tapped
FULL OUTER JOIN settled
  ON tapped.day = settled.day
