MODEL (
  name freight.charge_codes,
  kind SEED (path '../seeds/charge_codes.csv'),
  columns (charge_code STRING, kind STRING, is_revenue BOOLEAN),
  grain charge_code
);
