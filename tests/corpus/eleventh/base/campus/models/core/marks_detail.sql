MODEL (
  name core.marks_detail,
  kind FULL,
  audits (
    NOT_NULL(columns := (mark_id))
  )
);

SELECT
  m.mark_id,
  m.student_id,
  m.course_code,
  p.pos + 1 AS part,
  p.score,
  FROM_JSON(m.detail, 'bonus DOUBLE, late BOOLEAN') AS detail,
  SIZE(FILTER(m.scores, x -> NOT x IN (0))) AS scored_parts
FROM lms.marks AS m
LATERAL VIEW OUTER POSEXPLODE(m.scores) p AS pos, score
