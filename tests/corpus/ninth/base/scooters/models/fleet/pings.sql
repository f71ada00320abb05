MODEL (
  name fleet.pings,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column sent_hour,
    lookback 6,
    batch_size 48
  ),
  cron '@hourly',
  partitioned_by sent_hour,
  grain (scooter_id, sent_at),
  signals (pings_complete(minutes := 20)),
  audits (
    not_null(columns := (scooter_id, sent_at)),
    forall(criteria := (battery BETWEEN 0 AND 100))
  )
);

SELECT
  p.scooter_id,
  p.city,
  p.battery,
  p.lat,
  p.lon,
  UPPER(TRIM(p.state)) AS state,
  SIZE(p.errors) AS errors,
  p.errors[0] AS first_error,
  p.attributes['firmware'] AS firmware,
  p.sent_at,
  p.received_at,
  DATE_TRUNC('HOUR', p.sent_at) AS sent_hour
FROM iot.pings AS p
WHERE p.sent_at BETWEEN @start_ts AND @end_ts
QUALIFY ROW_NUMBER() OVER (PARTITION BY p.scooter_id, p.sent_at ORDER BY p.received_at) = 1
