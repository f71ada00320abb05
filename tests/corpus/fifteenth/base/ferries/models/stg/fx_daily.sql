MODEL (
  name stg.fx_daily,
  kind FULL,
  description 'A rate for each day: weekends have the rate of Friday.',
  grain (rate_date, currency),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (rate_date, currency)),
    NOT_NULL(columns := (rate_to_eur))
  )
);

WITH spans AS (
  SELECT
    r.currency,
    r.rate_date,
    r.rate_to_eur,
    COALESCE(
      LEAD(r.rate_date) OVER (PARTITION BY r.currency ORDER BY r.rate_date),
      DATE_ADD(r.rate_date, 4)
    ) AS next_date
  FROM fx.rates AS r
)
SELECT
  EXPLODE(SEQUENCE(s.rate_date, DATE_SUB(s.next_date, 1), INTERVAL '1' DAY)) AS rate_date,
  s.currency,
  s.rate_to_eur
FROM spans AS s
