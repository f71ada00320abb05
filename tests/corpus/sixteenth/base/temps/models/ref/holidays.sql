MODEL (
  name ref.holidays,
  kind SEED (
    path '../../seeds/holidays.csv'
  ),
  columns (
    country STRING,
    holiday DATE,
    name STRING
  ),
  grain (country, holiday),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (country, holiday))
  )
);
