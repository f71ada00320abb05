MODEL (
  name stg.stations,
  kind FULL,
  grain station_id,
  audits (
    UNIQUE_VALUES(columns := (station_id)),
    NOT_NULL(columns := (station_id, site_code, tariff_code))
  )
);

SELECT
  s.station_id,
  s.station_name,
  UPPER(TRIM(s.site_code)) AS site_code,
  s.time_zone,
  s.max_kw,
  UPPER(s.tariff_code) AS tariff_code,
  s.installed_on,
  s.retired_on,
  s.updated_at
FROM ops.stations AS s
