MODEL (
  name stg.work_orders,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key wo_id
  ),
  grain wo_id,
  audits (
    UNIQUE_VALUES(columns := (wo_id)),
    NOT_NULL(columns := (wo_id))
  )
);

SELECT
  CAST(w.wo_id AS BIGINT) AS wo_id,
  UPPER(w.bike_code) AS bike_code,
  LOWER(w.plant) AS plant,
  CAST(w.planned_qty AS INT) AS planned_qty,
  CAST(w.released_on AS DATE) AS released_on,
  CAST(w.due_on AS DATE) AS due_on,
  CAST(w.closed_on AS DATE) AS closed_on
FROM erp.work_orders AS w
WHERE
  w.changed_at BETWEEN @start_ts AND @end_ts
