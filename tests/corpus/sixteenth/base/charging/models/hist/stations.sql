MODEL (
  name hist.stations,
  kind SCD_TYPE_2_BY_TIME (
    unique_key station_id,
    updated_at_name updated_at,
    time_data_type TIMESTAMP
  ),
  description 'valid_to is NULL for the version of today; a version ends when the next one begins.',
  table_format iceberg,
  grain (station_id, valid_from),
  audits (
    NOT_NULL(columns := (station_id, tariff_code))
  )
);

SELECT
  s.station_id,
  s.site_code,
  s.tariff_code,
  s.max_kw,
  s.updated_at
FROM stg.stations AS s
