MODEL (
  name stg.fx,
  kind FULL,
  grain (currency, day),
  audits (UNIQUE_COMBINATION_OF_COLUMNS(columns := (currency, day)))
);

SELECT f.currency, f.day, f.rate
FROM raw.fx AS f
WHERE f.rate > 0
