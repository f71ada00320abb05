AUDIT (
  name charges_have_rates,
  dialect spark,
  standalone TRUE
);

SELECT
  c.call_id
FROM core.charges AS c
WHERE
  c.rate IS NULL
