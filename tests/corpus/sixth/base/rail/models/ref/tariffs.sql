MODEL (
  name ref.tariffs,
  kind SEED (path '../../seeds/tariffs.csv'),
  columns (kind STRING, min_kg INT, max_kg INT, eur_per_km DECIMAL(6, 2)),
  grain (kind, min_kg)
);
