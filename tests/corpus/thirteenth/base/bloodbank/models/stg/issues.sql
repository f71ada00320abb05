MODEL (
  name stg.issues,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column issued_on
  ),
  partitioned_by (issued_on),
  grain issue_id,
  audits (
    UNIQUE_VALUES(columns := (issue_id)),
    NOT_NULL(columns := (issue_id, unit_id))
  )
);

SELECT
  CAST(i.issue_id AS BIGINT) AS issue_id,
  CAST(i.unit_id AS BIGINT) AS unit_id,
  CAST(i.order_id AS BIGINT) AS order_id,
  i.hospital_code,
  CAST(i.issued_at AS DATE) AS issued_on
FROM erp.issues AS i
WHERE
  CAST(i.issued_at AS DATE) BETWEEN @start_ds AND @end_ds
