MODEL (
  name mart.late,
  kind INCREMENTAL_BY_TIME_RANGE (time_column event_day, batch_size 30, forward_only true, on_destructive_change error),
  grain event_id,
  audits (not_null(columns := (event_id)))
);

SELECT e.event_id, e.station, e.delay_min, e.event_day
FROM stg.events AS e
WHERE @late(e.delay_min) AND e.event_day BETWEEN @start_ds AND @end_ds
