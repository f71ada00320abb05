MODEL (
  name mart.charge_kinds,
  kind FULL,
  grain month
);

JINJA_QUERY_BEGIN;
SELECT
  TRUNC(c.charged_on, 'MM') AS month,
  {%- for kind in ['tuition', 'housing', 'library'] %}
  SUM(CASE WHEN c.kind = '{{ kind }}' THEN c.amount ELSE 0 END) AS {{ kind }},
  {%- endfor %}
  COUNT(*) AS charges
FROM core.charges AS c
GROUP BY 1
JINJA_END;
