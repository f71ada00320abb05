MODEL (
  name core.merchants,
  kind SCD_TYPE_2_BY_COLUMN (
    unique_key merchant_id,
    columns [legal_name, country, mcc, tier]
  ),
  grain (merchant_id, valid_from),
  audits (not_null(columns := (merchant_id, tier)))
);

SELECT
  m.merchant_id,
  m.legal_name,
  m.country,
  m.mcc,
  COALESCE(m.tier, 'basic') AS tier,
  m.opened_on,
  m.closed_on
FROM raw.merchants AS m
