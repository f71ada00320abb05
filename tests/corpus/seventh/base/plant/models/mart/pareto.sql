MODEL (
  name mart.pareto,
  kind FULL,
  grain machine_id,
  audits (not_null(columns := (machine_id)))
);

SELECT
  d.machine_id,
  PERCENTILE(d.days_open, 0.5) AS typical_days,
  COUNT(*) AS tickets,
  MAX_BY(d.severity, d.opened_on) AS last_severity,
  COUNT_IF(d.days_open > 3) AS long_ones
FROM core.downtime AS d
GROUP BY d.machine_id
HAVING COUNT(*) > 0
