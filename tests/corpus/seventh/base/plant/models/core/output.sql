MODEL (
  name core.output,
  kind INCREMENTAL_BY_TIME_RANGE (time_column reading_day, batch_size 15),
  grain (machine_id, reading_day),
  audits (not_null(columns := (machine_id, reading_day)), unique_combination_of_columns(columns := (machine_id, reading_day)))
);

SELECT
  r.machine_id,
  r.reading_day,
  SUM(CASE WHEN r.metric = 'pieces' THEN r.value ELSE 0 END) AS pieces,
  SUM(CASE WHEN r.metric = 'scrap' THEN r.value ELSE 0 END) AS scrap,
  COUNT(DISTINCT r.batch_no) AS batches
FROM stg.readings AS r
WHERE r.reading_day BETWEEN @start_ds AND @end_ds
GROUP BY r.machine_id, r.reading_day
