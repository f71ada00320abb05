MODEL (
  name core.journeys,
  kind FULL,
  grain parcel_id,
  audits (
    UNIQUE_VALUES(columns := (parcel_id)),
    NOT_NULL(columns := (parcel_id)),
    delivered_after_pickup
  )
);

WITH events AS (
  SELECT
    s.parcel_id,
    MIN(CASE WHEN s.event = 'PICKUP' THEN s.scanned_at END) AS picked_up_at,
    MIN(CASE WHEN s.event = 'DELIVERED' THEN s.scanned_at END) AS delivered_at,
    COUNT(CASE WHEN s.event = 'ATTEMPT' THEN 1 END) AS attempts,
    COUNT(DISTINCT s.depot_code) AS depots
  FROM stg.scans AS s
  GROUP BY s.parcel_id
), last_seen AS (
  SELECT parcel_id, depot_code
  FROM (
    SELECT
      s.parcel_id,
      s.depot_code,
      ROW_NUMBER() OVER (PARTITION BY s.parcel_id ORDER BY s.scanned_at DESC, s.scan_id DESC) AS rn
    FROM stg.scans AS s
  ) AS x
  WHERE rn = 1
)
SELECT
  p.parcel_id,
  p.sender_id,
  p.service,
  p.weight_g,
  CAST(p.booked_at AS DATE) AS booked_on,
  e.picked_up_at,
  e.delivered_at,
  COALESCE(e.attempts, 0) AS attempts,
  COALESCE(e.depots, 0) AS depots,
  l.depot_code AS last_depot
FROM stg.parcels AS p
LEFT JOIN events AS e
  ON e.parcel_id = p.parcel_id
LEFT JOIN last_seen AS l
  ON l.parcel_id = p.parcel_id
