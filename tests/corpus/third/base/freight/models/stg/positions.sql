MODEL (
  name freight_stg.positions,
  kind INCREMENTAL_BY_PARTITION,
  partitioned_by (vessel),
  cron '@daily'
);

SELECT
  p.vessel,
  p.seen_at,
  p.lat,
  p.lon,
  p.speed
FROM ais.positions AS p
WHERE
  p.vessel IN (
    SELECT
      q.vessel
    FROM ais.positions AS q
    WHERE
      q.seen_at BETWEEN @start_ts AND @end_ts
  )
