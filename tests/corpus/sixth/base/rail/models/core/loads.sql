MODEL (
  name core.loads,
  kind INCREMENTAL_BY_TIME_RANGE (time_column event_day, batch_size 30),
  grain event_id,
  audits (not_null(columns := (event_id)))
);

SELECT e.event_id, e.station, e.load_kg, e.event_day
FROM stg.events AS e
WHERE e.event = 'load' AND e.event_day BETWEEN @start_ds AND @end_ds
