MODEL (
  name stg.events,
  kind INCREMENTAL_BY_TIME_RANGE (time_column event_day, batch_size 30, lookback 2),
  partitioned_by event_day,
  grain event_id,
  signals (loaded(hours := 6)),
  audits (not_null(columns := (event_id, wagon_id)), unique_values(columns := (event_id)), plausible_delay(column := delay_min))
);

SELECT
  e.event_id,
  e.wagon_id,
  e.station,
  e.event,
  e.delay_min,
  e.load_kg,
  CAST(e.event_ts AS DATE) AS event_day
FROM ops.events AS e
WHERE CAST(e.event_ts AS DATE) BETWEEN @start_ds AND @end_ds
