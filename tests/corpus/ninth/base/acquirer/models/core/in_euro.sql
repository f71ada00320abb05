MODEL (
  name core.in_euro,
  kind EMBEDDED
);

SELECT
  c.capture_id,
  c.merchant_id,
  c.scheme,
  c.kind,
  c.captured_on,
  c.amount * COALESCE(r.eur_rate, 1) AS amount_eur
FROM stg.captures AS c
LEFT JOIN stg.rates AS r
  ON r.currency = c.currency
  AND c.captured_on >= r.valid_from
  AND c.captured_on < r.valid_to
