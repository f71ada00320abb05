MODEL (
  name ref.ports,
  kind SEED (
    path '../../seeds/ports.csv'
  ),
  columns (
    port_code STRING,
    port_name STRING,
    country STRING,
    time_zone STRING
  ),
  grain port_code,
  audits (UNIQUE_VALUES(columns := (port_code)))
);
