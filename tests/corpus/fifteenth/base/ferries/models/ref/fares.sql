MODEL (
  name ref.fares,
  kind SEED (
    path '../../seeds/fares.csv'
  ),
  columns (
    fare_class STRING,
    label STRING,
    refundable BOOLEAN,
    fee_pct DECIMAL(4, 2)
  ),
  grain fare_class,
  audits (UNIQUE_VALUES(columns := (fare_class)), NOT_NULL(columns := (fare_class)))
);
