MODEL (
  name fleet.zones,
  kind SEED (path '../../seeds/zones.csv'),
  columns (
    zone_id INT, city STRING, lat_min DOUBLE, lat_max DOUBLE, lon_min DOUBLE, lon_max DOUBLE, parking BOOLEAN
  ),
  grain zone_id,
  audits (unique_values(columns := (zone_id)), not_null(columns := (zone_id, city)))
);
