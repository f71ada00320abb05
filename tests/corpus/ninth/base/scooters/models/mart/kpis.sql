MODEL (
  name mart.kpis,
  kind FULL,
  grain (city, measure),
  audits (accepted_values(column := measure, is_in := ('rides', 'paid', 'km')))
);

JINJA_QUERY_BEGIN;
{% set measures = ['rides', 'paid', 'km'] %}
{% for measure in measures %}
SELECT d.city, '{{ measure }}' AS measure, CAST(SUM(d.{{ measure }}) AS DECIMAL(20, 2)) AS value
FROM mart.city_days AS d
WHERE d.day >= DATE '2024-06-01'
GROUP BY d.city
{% if not loop.last %}UNION ALL{% endif %}
{% endfor %}
JINJA_END;
