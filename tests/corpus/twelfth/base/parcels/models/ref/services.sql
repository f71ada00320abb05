MODEL (
  name ref.services,
  kind SEED (
    path '../../seeds/services.csv'
  ),
  columns (
    service STRING,
    promise_hours INT,
    price_per_kg DECIMAL(8, 2)
  ),
  grain service,
  audits (UNIQUE_VALUES(columns := (service)), NOT_NULL(columns := (service)))
);
