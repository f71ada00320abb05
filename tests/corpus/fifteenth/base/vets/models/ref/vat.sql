MODEL (
  name ref.vat,
  kind SEED (
    path '../../seeds/vat.csv'
  ),
  columns (
    country STRING,
    vat_code STRING,
    rate DECIMAL(5, 4),
    valid_from DATE,
    valid_to DATE
  ),
  grain (country, vat_code, valid_from),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (country, vat_code, valid_from)),
    ACCEPTED_RANGE(column := rate, min_v := 0, max_v := 1)
  )
);
