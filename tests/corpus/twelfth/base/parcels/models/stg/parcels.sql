MODEL (
  name stg.parcels,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key parcel_id
  ),
  grain parcel_id,
  storage_format delta,
  audits (
    UNIQUE_VALUES(columns := (parcel_id)),
    NOT_NULL(columns := (parcel_id, booked_at))
  )
);

SELECT
  p.parcel_id,
  p.sender_id,
  p.postcode,
  p.weight_g,
  COALESCE(p.service, 'STANDARD') AS service,
  p.declared_value,
  p.currency,
  p.booked_at,
  p.updated_at
FROM raw.parcels AS p
WHERE p.updated_at BETWEEN @start_ts AND @end_ts
  AND p.weight_g >= @min_weight_g
QUALIFY ROW_NUMBER() OVER (PARTITION BY p.parcel_id ORDER BY p.updated_at DESC) = 1
