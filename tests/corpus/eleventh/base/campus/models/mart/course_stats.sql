MODEL (
  name mart.course_stats,
  kind FULL,
  grain (course_code, term),
  audits (
    NOT_NULL(columns := (course_code, term)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (course_code, term))
  )
);

WITH enrolled AS (
  SELECT
    e.course_code,
    e.term,
    COUNT(*) AS seats_taken,
    COUNT_IF(e.status = 'withdrawn') AS withdrawn
  FROM core.current_enrolments AS e
  GROUP BY
    e.course_code,
    e.term
), marked AS (
  SELECT
    r.course_code,
    r.term,
    COUNT(*) AS marked,
    STDDEV(r.points) AS spread,
    PERCENTILE(r.points, 0.5) AS median_points
  FROM core.results AS r
  GROUP BY
    r.course_code,
    r.term
)
SELECT
  c.course_code,
  c.term,
  c.title,
  COALESCE(e.seats_taken, 0) AS seats_taken,
  COALESCE(e.withdrawn, 0) AS withdrawn,
  ROUND(COALESCE(e.seats_taken, 0) * 100 / c.capacity, 1) AS fill_percent,
  CEIL(c.capacity / 10) * 10 AS chairs,
  COALESCE(m.marked, 0) AS marked,
  m.spread,
  m.median_points
FROM stg.courses AS c
LEFT JOIN enrolled AS e
  ON c.course_code = e.course_code AND c.term = e.term
LEFT JOIN marked AS m
  ON c.course_code = m.course_code AND c.term = m.term
