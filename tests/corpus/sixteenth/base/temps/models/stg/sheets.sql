MODEL (
  name stg.sheets,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column work_date,
    lookback 14,
    batch_size 60
  ),
  partitioned_by (work_date),
  grain sheet_id,
  audits (
    UNIQUE_VALUES(columns := (sheet_id)),
    NOT_NULL(columns := (sheet_id, assignment_id, work_date, minutes)),
    ACCEPTED_VALUES(column := kind, is_in := ('regular', 'overtime', 'sick')),
    minutes_of_a_day(most := 960)
  )
);

WITH ranked AS (
  SELECT
    s.sheet_id,
    s.assignment_id,
    s.work_date,
    s.kind,
    s.minutes,
    s.break_minutes,
    s.status,
    s.approved_by,
    ROW_NUMBER() OVER (PARTITION BY s.sheet_id ORDER BY s.loaded_at DESC) AS rn
  FROM tms.sheets AS s
  WHERE
    s.work_date BETWEEN @start_ds AND @end_ds
)
SELECT
  r.sheet_id,
  r.assignment_id,
  LOWER(r.kind) AS kind,
  r.minutes,
  COALESCE(r.break_minutes, 0) AS break_minutes,
  LOWER(r.status) AS status,
  r.approved_by,
  r.work_date
FROM ranked AS r
WHERE
  r.rn = 1
