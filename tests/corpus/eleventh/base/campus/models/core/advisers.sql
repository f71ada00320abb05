MODEL (
  name core.advisers,
  kind SCD_TYPE_2_BY_COLUMN (
    unique_key student_id,
    columns (adviser, program)
  ),
  table_format iceberg,
  grain (student_id, valid_from)
);

SELECT
  student_id,
  adviser,
  program,
  loaded_at
FROM stg.students
WHERE
  left_on IS NULL
