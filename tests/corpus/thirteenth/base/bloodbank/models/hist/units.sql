MODEL (
  name hist.units,
  kind SCD_TYPE_2_BY_COLUMN (
    unique_key unit_id,
    columns (state, location),
    invalidate_hard_deletes TRUE,
    time_data_type TIMESTAMP
  ),
  table_format iceberg,
  grain (unit_id, valid_from),
  audits (
    NOT_NULL(columns := (unit_id))
  )
);

SELECT
  u.unit_id,
  u.component,
  u.state,
  u.location,
  u.expires_on
FROM stg.units AS u
