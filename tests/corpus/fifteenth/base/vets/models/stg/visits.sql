MODEL (
  name stg.visits,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column visited_on,
    lookback 7,
    batch_size 60
  ),
  partitioned_by (visited_on),
  grain visit_id,
  audits (
    UNIQUE_VALUES(columns := (visit_id)),
    NOT_NULL(columns := (visit_id, clinic_id, pet_id, visited_on)),
    minutes_plausible(most := 480)
  )
);

WITH versions AS (
  SELECT
    v.visit_id,
    v.clinic_id,
    v.pet_id,
    v.vet_id,
    v.visited_at,
    v.minutes,
    LOWER(v.kind) AS kind,
    v.is_void,
    ROW_NUMBER() OVER (PARTITION BY v.visit_id ORDER BY v.loaded_at DESC) AS rn
  FROM pms.visits AS v
  WHERE
    TO_DATE(v.visited_at) BETWEEN @start_ds AND @end_ds
)
SELECT
  x.visit_id,
  x.clinic_id,
  x.pet_id,
  x.vet_id,
  x.visited_at,
  x.minutes,
  x.kind,
  TO_DATE(x.visited_at) AS visited_on
FROM versions AS x
WHERE
  x.rn = 1 AND NOT COALESCE(x.is_void, FALSE)
