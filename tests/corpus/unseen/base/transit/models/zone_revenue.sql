MODEL (
  name fare.zone_revenue,
  kind FULL,
  grain (zone, month),
  audits (
    NOT_NULL(columns := (month))
  )
);

SELECT
  COALESCE(r.zone, 'unknown') AS zone,
  CAST(DATE_TRUNC('MONTH', r.tap_date) AS DATE) AS month,
  COUNT(*) AS rides,
  COUNT(DISTINCT r.card_id) AS cards,
  SUM(r.amount_cents) / 100 AS revenue
FROM fare.rides AS r
GROUP BY
  COALESCE(r.zone, 'unknown'),
  CAST(DATE_TRUNC('MONTH', r.tap_date) AS DATE)
