MODEL (
  name mart.late_parcels,
  kind FULL,
  grain parcel_id,
  audits (UNIQUE_VALUES(columns := (parcel_id)), NOT_NULL(columns := (parcel_id)))
);

SELECT
  j.parcel_id,
  j.sender_id,
  j.service,
  @hours_between(j.picked_up_at, j.delivered_at) AS hours,
  CASE
    WHEN j.attempts > 2 THEN 'address'
    WHEN j.depots > 3 THEN 'routing'
    ELSE 'other'
  END AS cause
FROM core.journeys AS j
WHERE @hours_between(j.picked_up_at, j.delivered_at) > @late_after_hours
  AND j.sender_id NOT IN (SELECT t.sender_id FROM stg.senders AS t WHERE t.tier = 'INTERNAL' AND t.sender_id IS NOT NULL)
