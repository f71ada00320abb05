MODEL (
  name ref.depots,
  kind SEED (
    path '../../seeds/depots.csv'
  ),
  columns (
    depot_code STRING,
    depot_name STRING,
    region STRING,
    opened_on DATE,
    capacity INT
  ),
  grain depot_code,
  audits (UNIQUE_VALUES(columns := (depot_code)), NOT_NULL(columns := (depot_code)))
);
