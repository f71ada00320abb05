MODEL (
  name ship.scans,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column event_ts,
    batch_size 48,
    lookback 12,
    forward_only TRUE
  ),
  cron '@hourly',
  grain event_id,
  audits (
    NOT_NULL(columns := (event_id, parcel_id, event_ts)),
    UNIQUE_VALUES(columns := (event_id))
  )
);

WITH latest AS (
  SELECT
    e.event_id,
    e.parcel_id,
    e.depot_id,
    e.event_type,
    e.event_ts,
    e.device,
    ROW_NUMBER() OVER (PARTITION BY e.event_id ORDER BY e.received_ts DESC) AS rn
  FROM scan.events AS e
  WHERE
    e.event_ts BETWEEN @start_ts AND @end_ts
)
SELECT
  CAST(event_id AS BIGINT) AS event_id,
  CAST(parcel_id AS STRING) AS parcel_id,
  CAST(depot_id AS STRING) AS depot_id,
  UPPER(TRIM(event_type)) AS event_type,
  CAST(event_ts AS TIMESTAMP) AS event_ts,
  CAST(device AS STRING) AS device
FROM latest
WHERE
  rn = 1
