MODEL (
  name stg.gate,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column passed_on
  ),
  owner terminal_data,
  partitioned_by (passed_on),
  grain (visit_id, direction),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (visit_id, direction)),
    NOT_NULL(columns := (visit_id, direction))
  )
);

SELECT
  CAST(g.visit_id AS BIGINT) AS visit_id,
  UPPER(g.container_no) AS container_no,
  UPPER(g.direction) AS direction,
  CAST(g.passed_at AS TIMESTAMP) AS passed_at,
  CAST(g.passed_at AS DATE) AS passed_on
FROM tos.gate AS g
WHERE
  CAST(g.passed_at AS DATE) BETWEEN @start_ds AND @end_ds
