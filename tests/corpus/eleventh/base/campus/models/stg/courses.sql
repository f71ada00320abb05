MODEL (
  name stg.courses,
  kind FULL,
  grain (course_code, term),
  audits (
    NOT_NULL(columns := (course_code, term)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (course_code, term))
  )
);

SELECT DISTINCT
  c.course_code,
  c.term,
  c.title,
  c.credits,
  c.capacity,
  CAST(c.level AS INT) AS level,
  SUBSTRING_INDEX(c.course_code, '-', -1) AS number,
  c.parts
FROM sis.courses AS c
