MODEL (
  name mart.disputes,
  kind INCREMENTAL_BY_PARTITION,
  partitioned_by (scheme, opened_month),
  grain chargeback_id,
  audits (not_null(columns := (chargeback_id, scheme, opened_month)))
);

SELECT
  b.chargeback_id,
  b.capture_id,
  b.reason_code,
  CASE b.outcome WHEN 'won' THEN 1 WHEN 'lost' THEN 0 END AS won,
  b.amount / 100.0 AS amount,
  DATEDIFF(b.closed_at, b.opened_at) AS days_open,
  LOWER(b.scheme) AS scheme,
  DATE_FORMAT(b.opened_at, 'yyyy-MM') AS opened_month
FROM raw.chargebacks AS b
WHERE DATE_FORMAT(b.opened_at, 'yyyy-MM') >= DATE_FORMAT(ADD_MONTHS(@execution_date, -6), 'yyyy-MM')
