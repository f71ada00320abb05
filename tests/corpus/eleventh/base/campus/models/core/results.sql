MODEL (
  name core.results,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key (student_id, course_code, term),
    when_matched (
      WHEN MATCHED AND source.marked_at >= target.marked_at THEN UPDATE SET
        target.grade = source.grade,
        target.points = source.points,
        target.best = source.best,
        target.marked_at = source.marked_at
    ),
    batch_size 31
  ),
  table_format iceberg,
  grain (student_id, course_code, term),
  audits (
    NOT_NULL(columns := (student_id, course_code, term)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (student_id, course_code, term))
  )
);

WITH latest AS (
  SELECT
    m.student_id,
    m.course_code,
    m.term,
    UPPER(m.grade) AS grade,
    m.scores,
    m.marked_at,
    ROW_NUMBER() OVER (PARTITION BY m.student_id, m.course_code, m.term ORDER BY m.marked_at DESC, m.mark_id DESC) AS rn
  FROM lms.marks AS m
  WHERE
    m.loaded_at BETWEEN @start_ts AND @end_ts
    AND NOT m.student_id IS NULL
    AND NOT m.course_code IS NULL
    AND NOT m.term IS NULL
)
SELECT
  l.student_id,
  l.course_code,
  l.term,
  l.grade,
  g.points,
  ARRAY_MAX(l.scores) AS best,
  l.marked_at
FROM latest AS l
LEFT JOIN ref.grades AS g
  ON l.grade = g.grade
WHERE
  l.rn = 1
