MODEL (
  name stg.containers,
  kind FULL,
  owner terminal_data,
  grain container_no,
  audits (
    UNIQUE_VALUES(columns := (container_no)),
    NOT_NULL(columns := (container_no))
  )
);

SELECT
  UPPER(c.container_no) AS container_no,
  c.iso_type,
  UPPER(c.line_code) AS line_code,
  COALESCE(c.is_reefer, FALSE) AS is_reefer,
  CAST(c.tare_kg AS INT) AS tare_kg
FROM tos.containers AS c
