MODEL (
  name ref.partners,
  kind SEED (
    path '../../seeds/partners.csv'
  ),
  columns (
    partner STRING,
    partner_name STRING,
    country STRING,
    fee_share DECIMAL(4, 2)
  ),
  grain partner,
  audits (
    UNIQUE_VALUES(columns := (partner)),
    NOT_NULL(columns := (partner, fee_share))
  )
);
