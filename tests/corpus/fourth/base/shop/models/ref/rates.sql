MODEL (
  name ref.rates,
  kind SEED (
    path '../../seeds/rates.csv'
  ),
  columns (
    country STRING,
    label STRING,
    rate DECIMAL(6, 3)
  ),
  grain country,
  audits (
    NOT_NULL(columns := (country)),
    UNIQUE_VALUES(columns := (country))
  )
);
