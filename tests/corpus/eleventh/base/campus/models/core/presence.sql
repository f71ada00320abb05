MODEL (
  name core.presence,
  kind FULL,
  grain (student_id, day),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (student_id, day))
  )
);

SELECT
  s.student_id,
  CAST(w.swiped_local AS DATE) AS day,
  COUNT(*) AS swipes,
  COUNT(DISTINCT w.building) AS buildings,
  MIN(w.swiped_local) AS first_swipe,
  MAX(w.swiped_local) AS last_swipe
FROM stg.swipes AS w
INNER JOIN stg.students AS s
  ON w.card_no = s.card_no AND s.left_on IS NULL
GROUP BY
  s.student_id,
  CAST(w.swiped_local AS DATE)
