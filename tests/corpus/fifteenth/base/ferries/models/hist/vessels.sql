MODEL (
  name hist.vessels,
  kind SCD_TYPE_2_BY_TIME (
    unique_key vessel_id,
    updated_at_name updated_at,
    time_data_type TIMESTAMP
  ),
  table_format iceberg,
  grain (vessel_id, valid_from),
  audits (
    NOT_NULL(columns := (vessel_id, seats))
  )
);

SELECT
  v.vessel_id,
  v.vessel_name,
  v.seats,
  v.lane_metres,
  v.updated_at
FROM tms.vessels AS v
