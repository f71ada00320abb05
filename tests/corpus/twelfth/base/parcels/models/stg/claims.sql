MODEL (
  name stg.claims,
  kind VIEW,
  grain claim_id
);

SELECT
  c.claim_id,
  c.parcel_id,
  LOWER(c.reason) AS reason,
  c.amount,
  c.currency,
  c.opened_at,
  c.closed_at,
  c.closed_at IS NULL AS is_open
FROM raw.claims AS c
