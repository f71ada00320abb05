MODEL (
  name mart.claims_ratio,
  kind FULL,
  grain (month, service),
  audits (NOT_NULL(columns := (month, service)))
);

WITH booked AS (
  SELECT TRUNC(j.booked_on, 'MONTH') AS month, j.service, j.parcel_id
  FROM core.journeys AS j
), claimed AS (
  SELECT c.parcel_id, SUM(c.amount) AS claimed_amount
  FROM stg.claims AS c
  WHERE c.reason IN ('lost', 'damaged') AND NOT c.is_open
  GROUP BY c.parcel_id
)
SELECT
  b.month,
  b.service,
  COUNT(b.parcel_id) AS parcels,
  COUNT(c.parcel_id) AS claims,
  COALESCE(SUM(c.claimed_amount), 0) AS claimed_amount,
  COUNT(c.parcel_id) / COUNT(b.parcel_id) AS claims_ratio
FROM booked AS b
LEFT JOIN claimed AS c ON c.parcel_id = b.parcel_id
GROUP BY b.month, b.service
