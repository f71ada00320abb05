MODEL (
  name stg.plays,
  kind INCREMENTAL_BY_TIME_RANGE (time_column played_on, lookback 3, batch_size 30),
  partitioned_by played_on,
  owner streaming,
  grain play_id,
  signals (plays_have_arrived(wait_minutes := 90)),
  audits (
    not_null(columns := (play_id, user_id)),
    unique_values(columns := (play_id)),
    not_null_proportion(column := country, threshold := 0.95),
    number_of_rows(threshold := 1000)
  )
);

SELECT
  p.play_id,
  p.user_id,
  p.track_id,
  p.ms_played,
  TIMESTAMP_MILLIS(p.started_ms) AS started_at,
  p.country,
  SUBSTRING_INDEX(p.context, ':', -1) AS context_id,
  p.offline IS TRUE AS offline,
  CAST(TIMESTAMP_MILLIS(p.started_ms) AS DATE) AS played_on
FROM raw.plays AS p
WHERE p.ms_played >= 30000
  AND CAST(TIMESTAMP_MILLIS(p.started_ms) AS DATE) BETWEEN @start_ds AND @end_ds
