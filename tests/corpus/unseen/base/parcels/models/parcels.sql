MODEL (
  name ship.parcels,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key parcel_id
  ),
  cron '@daily',
  grain parcel_id,
  signals (
    EXPORT_DONE(source := 'tms.parcels')
  ),
  audits (
    NOT_NULL(columns := (parcel_id)),
    UNIQUE_VALUES(columns := (parcel_id))
  )
);

WITH latest AS (
  SELECT
    p.parcel_id,
    p.sender_id,
    p.weight_g,
    p.country,
    p.service,
    p.created_ts,
    p.promised_ts,
    p.updated_ts,
    ROW_NUMBER() OVER (PARTITION BY p.parcel_id ORDER BY p.updated_ts DESC) AS rn
  FROM tms.parcels AS p
  WHERE
    p.updated_ts BETWEEN @start_ts AND @end_ts
)
SELECT
  CAST(parcel_id AS STRING) AS parcel_id,
  CAST(sender_id AS INT) AS sender_id,
  CAST(weight_g AS INT) AS weight_g,
  UPPER(country) AS country,
  CAST(service AS STRING) AS service,
  CAST(created_ts AS TIMESTAMP) AS created_ts,
  CAST(promised_ts AS TIMESTAMP) AS promised_ts,
  CAST(updated_ts AS TIMESTAMP) AS updated_ts
FROM latest
WHERE
  rn = 1
