MODEL (
  name mart.sender_invoices,
  kind FULL,
  grain (sender_id, month),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (sender_id, month)),
    NOT_NULL(columns := (sender_id, month, amount))
  )
);

WITH priced AS (
  SELECT
    j.parcel_id,
    j.sender_id,
    j.booked_on,
    @kg(j.weight_g) * v.price_per_kg AS price,
    p.currency
  FROM core.journeys AS j
  JOIN stg.parcels AS p ON p.parcel_id = j.parcel_id
  JOIN ref.services AS v ON v.service = j.service
  WHERE j.picked_up_at IS NOT NULL
)
SELECT
  pr.sender_id,
  CAST(TRUNC(pr.booked_on, 'MM') AS DATE) AS month,
  s.tier,
  COUNT(*) AS parcels,
  CAST(SUM(pr.price * CASE WHEN s.tier = 'GOLD' THEN 0.9 ELSE 1.0 END) AS DECIMAL(14, 2)) AS amount
FROM priced AS pr
JOIN stg.senders AS s
  ON s.sender_id = pr.sender_id
  AND s.valid_to IS NULL
GROUP BY pr.sender_id, CAST(TRUNC(pr.booked_on, 'MM') AS DATE), s.tier
