MODEL (
  name ref.machines,
  kind SEED (
    path '../../seeds/machines.csv',
    csv_settings (delimiter = ';', na_values = ['none'], keep_default_na = false)
  ),
  columns (machine_id STRING, hall STRING, line_no STRING, installed_on DATE, power_kw DECIMAL(8, 2), operator STRING),
  grain machine_id,
  audits (not_null(columns := (machine_id)), unique_values(columns := (machine_id)))
);
