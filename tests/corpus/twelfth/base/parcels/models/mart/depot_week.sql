MODEL (
  name mart.depot_week,
  kind VIEW,
  grain (week, depot_code)
);

JINJA_QUERY_BEGIN;
{% set measures = ['scans', 'parcels', 'damaged'] %}
SELECT
  DATE_TRUNC('WEEK', d.day) AS week,
  d.depot_code,
  {% for m in measures %}
  SUM(d.{{ m }}) AS {{ m }},
  {% endfor %}
  MAX(d.load_factor) AS peak_load
FROM core.depot_daily AS d
GROUP BY DATE_TRUNC('WEEK', d.day), d.depot_code
JINJA_END;
