MODEL (
  name ship.deliveries,
  kind FULL,
  cron '@daily',
  description 'First delivery scan of each parcel and whether it was late.',
  grain parcel_id
);

WITH delivered AS (
  SELECT
    s.parcel_id,
    MIN(s.event_ts) AS delivered_ts
  FROM ship.scans AS s
  WHERE
    s.event_type = 'DELIVERED'
  GROUP BY
    s.parcel_id
)
SELECT
  p.parcel_id,
  p.service,
  p.country,
  p.created_ts,
  p.promised_ts,
  d.delivered_ts,
  CASE
    WHEN d.delivered_ts IS NULL
    THEN 'open'
    WHEN d.delivered_ts > p.promised_ts
    THEN 'late'
    ELSE 'on time'
  END AS outcome
FROM ship.parcels AS p
LEFT JOIN delivered AS d
  ON p.parcel_id = d.parcel_id
