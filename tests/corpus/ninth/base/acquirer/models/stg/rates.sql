MODEL (
  name stg.rates,
  kind VIEW,
  grain (currency, valid_from)
);

SELECT
  r.currency,
  r.rate_day AS valid_from,
  COALESCE(
    LEAD(r.rate_day) OVER (PARTITION BY r.currency ORDER BY r.rate_day),
    DATE '9999-12-31'
  ) AS valid_to,
  r.eur_rate
FROM raw.fx_rates AS r
WHERE r.eur_rate > 0
