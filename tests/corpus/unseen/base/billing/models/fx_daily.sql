MODEL (
  name bill.fx_daily,
  kind FULL,
  description 'A rate for every day: on a day without one the last rate before it.',
  grain (currency, day)
);

WITH ranges AS (
  SELECT
    r.currency,
    r.rate,
    r.rate_date,
    LEAD(r.rate_date) OVER (PARTITION BY r.currency ORDER BY r.rate_date) AS next_date
  FROM fx.rates AS r
), days AS (
  SELECT DISTINCT
    i.issued_on AS day
  FROM bill.invoices AS i
)
SELECT
  ranges.currency,
  days.day,
  ranges.rate
FROM days
INNER JOIN ranges
  ON days.day >= ranges.rate_date
  AND days.day < COALESCE(ranges.next_date, CAST('9999-12-31' AS DATE))
