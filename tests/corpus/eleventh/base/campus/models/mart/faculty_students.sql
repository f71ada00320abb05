MODEL (
  name mart.@{faculty}_students,
  kind VIEW,
  blueprints (
    (faculty := arts, label := 'arts', min_level := 1),
    (faculty := science, label := 'science', min_level := 2),
    (faculty := law, label := 'law', min_level := 1)
  ),
  grain student_id
);

SELECT
  s.student_id,
  s.program,
  a.average,
  a.credits_passed
FROM stg.students AS s
LEFT JOIN mart.averages AS a
  ON s.student_id = a.student_id
WHERE
  s.faculty = @label AND COALESCE(a.highest_level, 1) >= @min_level
