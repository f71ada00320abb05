MODEL (
  name freight_stg.rates,
  kind FULL,
  description 'A rate holds from its date to the day before the next one.',
  grain (currency, valid_from)
);

SELECT
  r.currency,
  r.to_eur,
  r.rate_date AS valid_from,
  LEAD(r.rate_date, 1, CAST('9999-12-31' AS DATE)) OVER (PARTITION BY r.currency ORDER BY r.rate_date) AS valid_before
FROM fx.daily AS r
