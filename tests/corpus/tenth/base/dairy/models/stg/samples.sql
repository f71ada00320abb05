MODEL (
  name stg.samples,
  kind INCREMENTAL_BY_TIME_RANGE (time_column taken_on, lookback 5, batch_size 31),
  partitioned_by taken_on,
  owner lab,
  grain sample_id,
  audits (not_null(columns := (sample_id, pickup_id)))
);

SELECT
  s.sample_id,
  s.pickup_id,
  s.fat,
  s.protein,
  s.cells,
  @milk_class(s.cells) AS class,
  s.lab,
  CAST(s.taken_at AS DATE) AS taken_on
FROM raw.samples AS s
WHERE CAST(s.taken_at AS DATE) BETWEEN @start_ds AND @end_ds
