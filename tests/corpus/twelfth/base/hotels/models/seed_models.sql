MODEL (
  name ref.properties,
  kind SEED (path '../seeds/properties.csv'),
  columns (property_id INT, property_name STRING, city STRING, rooms INT, time_zone STRING),
  grain property_id,
  audits (UNIQUE_VALUES(columns := (property_id)), NOT_NULL(columns := (property_id)))
);
