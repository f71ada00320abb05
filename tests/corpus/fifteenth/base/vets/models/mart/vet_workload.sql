MODEL (
  name mart.vet_workload,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column visited_on,
    lookback 7,
    batch_size 60
  ),
  partitioned_by (visited_on),
  grain (vet_id, visited_on),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (vet_id, visited_on))
  )
);

SELECT
  v.vet_id,
  COUNT(*) AS visits,
  SUM(v.minutes) / 60 AS hours,
  COUNT_IF(v.kind = 'emergency') AS emergencies,
  MIN(v.visited_at) AS first_visit_at,
  MAX(v.visited_at) AS last_visit_at,
  v.visited_on
FROM stg.visits AS v
WHERE
  v.visited_on BETWEEN @start_ds AND @end_ds AND v.vet_id IS NOT NULL
GROUP BY
  v.vet_id,
  v.visited_on
