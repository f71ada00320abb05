MODEL (
  name mart.fees,
  kind FULL,
  owner finance,
  grain label_id,
  audits (not_null(columns := (label_id)))
);

SELECT
  f.label_id,
  SUM(@SAFE_ADD(f.fee, f.tax)) AS total,
  MAX(f.paid_at) AS last_paid,
  SUM(CASE WHEN f.paid_at >= DATE '2025-01-01' THEN f.fee ELSE 0 END) AS fee_2025
FROM raw.fees AS f
GROUP BY f.label_id
