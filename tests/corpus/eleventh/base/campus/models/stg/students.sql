MODEL (
  name stg.students,
  kind FULL,
  grain student_id,
  audits (
    NOT_NULL(columns := (student_id)),
    UNIQUE_VALUES(columns := (student_id))
  )
);

WITH numbered AS (
  SELECT
    s.*,
    ROW_NUMBER() OVER (PARTITION BY s.student_id ORDER BY s.updated_at DESC, s.loaded_at DESC) AS rn
  FROM sis.students AS s
  WHERE
    s.student_id IS NOT NULL
)
SELECT
  n.student_id,
  LPAD(TRIM(n.card_no), 8, '0') AS card_no,
  n.birth_date,
  n.program,
  LOWER(n.faculty) AS faculty,
  n.adviser,
  n.international,
  n.admitted_on,
  n.left_on,
  n.updated_at,
  n.loaded_at
FROM numbered AS n
WHERE
  n.rn = 1
