MODEL (
  name mart.client_months,
  kind FULL,
  description 'Hours and margin of a client in a month, in euros at the rate of the month.',
  grain (client_id, month_start),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (client_id, month_start)),
    NOT_NULL(columns := (client_id, month_start))
  )
);

WITH months AS (
  SELECT
    w.client_id,
    w.currency,
    CAST(DATE_TRUNC('MONTH', w.work_date) AS DATE) AS month_start,
    SUM(w.worked_minutes) AS worked_minutes,
    SUM(w.billable) AS billable,
    SUM(w.wages) AS wages
  FROM core.work_days AS w
  GROUP BY
    w.client_id,
    w.currency,
    CAST(DATE_TRUNC('MONTH', w.work_date) AS DATE)
)
SELECT
  m.client_id,
  c.client_name,
  c.industry,
  m.month_start,
  @hours(SUM(m.worked_minutes)) AS hours,
  SUM(m.billable * CASE WHEN m.currency = 'EUR' THEN 1 ELSE x.rate_to_eur END) AS billable_eur,
  SUM((m.billable - m.wages) * CASE WHEN m.currency = 'EUR' THEN 1 ELSE x.rate_to_eur END) AS margin_eur
FROM months AS m
INNER JOIN stg.clients AS c
  ON m.client_id = c.client_id
LEFT JOIN fx.monthly AS x
  ON m.currency = x.currency AND m.month_start = x.month
GROUP BY
  m.client_id,
  c.client_name,
  c.industry,
  m.month_start
