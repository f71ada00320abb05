MODEL (
  name hist.work_orders,
  kind SCD_TYPE_2_BY_COLUMN (
    unique_key wo_id,
    columns (due_on, planned_qty),
    time_data_type TIMESTAMP
  ),
  grain (wo_id, valid_from),
  audits (
    NOT_NULL(columns := (wo_id))
  )
);

SELECT
  w.wo_id,
  w.bike_code,
  w.planned_qty,
  w.due_on
FROM stg.work_orders AS w
