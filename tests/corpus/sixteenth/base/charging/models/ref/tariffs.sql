MODEL (
  name ref.tariffs,
  kind SEED (
    path '../../seeds/tariffs.csv'
  ),
  columns (
    tariff_code STRING,
    plug STRING,
    cents_per_kwh INT,
    start_fee_cents INT,
    idle_cents_per_minute INT
  ),
  grain (tariff_code, plug),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (tariff_code, plug)),
    NOT_NULL(columns := (tariff_code, plug, cents_per_kwh))
  )
);
