MODEL (
  name mart.recruiting,
  kind FULL,
  description 'Interviews and hires by role and month.',
  grain (role_code, month_start),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (role_code, month_start))
  )
);

SELECT
  UPPER(i.role_code) AS role_code,
  CAST(DATE_TRUNC('MONTH', i.held_at) AS DATE) AS month_start,
  COUNT(*) AS interviews,
  COUNT(i.score) AS scored,
  AVG(i.score) AS avg_score,
  COUNT_IF(i.outcome = 'hired') AS hired,
  COUNT_IF(i.outcome = 'hired') / COUNT(*) AS hire_share
FROM ats.interviews AS i
GROUP BY
  UPPER(i.role_code),
  CAST(DATE_TRUNC('MONTH', i.held_at) AS DATE)
