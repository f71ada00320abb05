MODEL (
  name ref.tiers,
  kind SEED (
    path '../../seeds/tiers.csv'
  ),
  columns (
    from_mwh INT,
    to_mwh INT,
    rate DECIMAL(6, 4)
  ),
  grain from_mwh
);
