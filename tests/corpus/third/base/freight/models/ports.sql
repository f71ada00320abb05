MODEL (
  name freight.ports,
  kind SEED (path '../seeds/ports.csv'),
  columns (port STRING, name STRING, country STRING, time_zone STRING),
  grain port
);
