MODEL (
  name ref.countries,
  kind SEED (
    path '../../seeds/countries.csv',
    csv_settings (skipinitialspace = true, encoding = 'utf-8', keep_default_na = false)
  ),
  columns (code STRING, name STRING, region STRING, vat DECIMAL(5, 4)),
  owner finance,
  grain code,
  audits (not_null(columns := (code)), unique_values(columns := (code)))
);
