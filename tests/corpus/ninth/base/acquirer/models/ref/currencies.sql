MODEL (
  name ref.currencies,
  kind SEED (
    path '../../seeds/currencies.csv',
    csv_settings (delimiter = ';')
  ),
  columns (code STRING, minor_units INT, name STRING),
  grain code,
  audits (not_null(columns := (code, minor_units)), unique_values(columns := (code)))
);
