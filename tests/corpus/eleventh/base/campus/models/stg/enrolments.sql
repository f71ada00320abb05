MODEL (
  name stg.enrolments,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column changed_on,
    batch_size 31,
    lookback 2
  ),
  partitioned_by (changed_on),
  grain enrolment_id,
  audits (
    NOT_NULL(columns := (enrolment_id, student_id))
  )
);

SELECT
  u.enrolment_id,
  u.student_id,
  u.course_code,
  u.term,
  u.status,
  u.version,
  CAST(u.changed_at AS DATE) AS changed_on
FROM (
  SELECT
    e.*
  FROM sis.enrolments AS e
  WHERE
    e.changed_at >= CAST('2024-01-01' AS TIMESTAMP)
  UNION ALL
  SELECT
    a.*
  FROM sis.enrolments_archive AS a
  WHERE
    a.changed_at < CAST('2024-01-01' AS TIMESTAMP)
) AS u
WHERE
  CAST(u.changed_at AS DATE) BETWEEN @start_ds AND @end_ds
