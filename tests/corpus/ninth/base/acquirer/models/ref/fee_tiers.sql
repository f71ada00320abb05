MODEL (
  name ref.fee_tiers,
  kind SEED (path '../../seeds/fee_tiers.csv'),
  columns (tier STRING, from_amount DECIMAL(12, 2), fee_rate DECIMAL(6, 4), fee_fixed DECIMAL(6, 2)),
  grain (tier, from_amount),
  audits (unique_combination_of_columns(columns := (tier, from_amount)))
);
