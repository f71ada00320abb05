MODEL (
  name ref.grades,
  kind SEED (
    path '../../seeds/grades.csv'
  ),
  columns (
    grade STRING,
    points DECIMAL(3, 1),
    passes BOOLEAN
  ),
  grain grade,
  audits (
    NOT_NULL(columns := (grade)),
    UNIQUE_VALUES(columns := (grade))
  )
);
