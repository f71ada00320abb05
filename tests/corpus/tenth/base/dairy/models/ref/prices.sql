MODEL (
  name ref.prices,
  kind SEED (path '../../seeds/prices.csv'),
  columns (class STRING, price DECIMAL(8, 4), valid_from DATE, valid_to DATE),
  owner finance,
  grain (class, valid_from),
  audits (not_null(columns := (class, price)))
);
