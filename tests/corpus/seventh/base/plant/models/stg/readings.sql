MODEL (
  name stg.readings,
  kind INCREMENTAL_BY_TIME_RANGE (time_column reading_day, lookback 2, batch_size 15),
  partitioned_by reading_day,
  grain reading_id,
  signals (line_is_closed(hall := 'A')),
  audits (
    not_null(columns := (reading_id, machine_id)),
    unique_values(columns := (reading_id)),
    accepted_values(column := metric, is_in := ('pieces', 'scrap', 'energy')),
    forall(criteria := (value >= 0, quality <= 10))
  )
);

SELECT
  r.reading_id,
  r.machine_id,
  r.metric,
  r.value,
  r.quality,
  CAST(GET_JSON_OBJECT(r.payload, '$.batch.no') AS INT) AS batch_no,
  r.read_at,
  CAST(r.read_at AS DATE) AS reading_day
FROM raw.readings AS r
WHERE r.quality >= @VAR('min_quality', 1) AND CAST(r.read_at AS DATE) BETWEEN @start_ds AND @end_ds
