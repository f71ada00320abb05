MODEL (
  name mart.fees,
  kind FULL,
  grain (merchant_id, fee_month),
  audits (not_null(columns := (merchant_id, fee_eur)), unique_combination_of_columns(columns := (merchant_id, fee_month)))
);

WITH months AS (
  SELECT
    d.merchant_id,
    TRUNC(d.captured_on, 'MONTH') AS fee_month,
    SUM(d.net_eur) AS net_eur,
    SUM(d.captures) AS captures
  FROM mart.merchant_days AS d
  GROUP BY d.merchant_id, TRUNC(d.captured_on, 'MONTH')
),

tiers AS (
  SELECT
    f.tier,
    f.from_amount,
    LEAD(f.from_amount, 1, 999999999) OVER (PARTITION BY f.tier ORDER BY f.from_amount) AS to_amount,
    f.fee_rate,
    f.fee_fixed
  FROM ref.fee_tiers AS f
)

SELECT
  m.merchant_id,
  m.fee_month,
  m.net_eur,
  ROUND(m.net_eur * t.fee_rate + m.captures * t.fee_fixed, 2) AS fee_eur
FROM months AS m
JOIN core.merchants AS k
  ON k.merchant_id = m.merchant_id AND k.valid_to IS NULL
JOIN tiers AS t
  ON t.tier = k.tier AND m.net_eur >= t.from_amount AND m.net_eur < t.to_amount
WHERE m.net_eur > 0
