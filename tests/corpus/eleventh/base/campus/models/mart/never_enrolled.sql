MODEL (
  name mart.never_enrolled,
  kind VIEW
);

(
  SELECT s.student_id, s.program FROM stg.students AS s
  UNION
  SELECT h.student_id, h.program FROM core.student_history AS h
)
EXCEPT
SELECT e.student_id, s.program
FROM core.current_enrolments AS e
LEFT JOIN stg.students AS s
  ON e.student_id = s.student_id
