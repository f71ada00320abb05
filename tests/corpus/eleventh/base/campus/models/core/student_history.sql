MODEL (
  name core.student_history,
  kind SCD_TYPE_2_BY_TIME (
    unique_key student_id,
    updated_at_name updated_at
  ),
  table_format iceberg,
  grain (student_id, valid_from)
);

SELECT
  student_id,
  program,
  faculty,
  international,
  updated_at
FROM stg.students
