MODEL (
  name mart.win_rates,
  kind FULL,
  grain (scheme, opened_month),
  audits (accepted_values(column := scheme, is_in := ('visa', 'mastercard', 'amex')))
);

JINJA_QUERY_BEGIN;
{% set floor = 5 %}
SELECT
  d.scheme,
  d.opened_month,
  ROUND(AVG(d.won), 3) AS win_rate,
  COUNT(*) AS disputes,
  COUNT(DISTINCT d.reason_code) AS reasons,
  {% for scheme in ['visa', 'mastercard'] %}
  SUM(CASE WHEN d.scheme = '{{ scheme }}' THEN d.amount ELSE 0 END) AS {{ scheme }}_amount,
  {% endfor %}
  PERCENTILE_APPROX(d.days_open, 0.5) AS median_days
FROM mart.disputes AS d
WHERE d.reason_code NOT IN ('10.4', '10.5')
GROUP BY d.scheme, d.opened_month
HAVING COUNT(*) >= {{ floor }}
JINJA_END;
