MODEL (
  name mart.channel_mix,
  kind FULL,
  grain (month, property_id),
  audits (NOT_NULL(columns := (month, property_id)))
);

JINJA_QUERY_BEGIN;
{%- set channels = ['direct', 'ota', 'corporate'] %}
SELECT
  CAST(DATE_TRUNC('MONTH', n.night) AS DATE) AS month,
  n.property_id,
  {%- for c in channels %}
  COUNT(CASE WHEN n.channel = '{{ c }}' THEN 1 END) AS nights_{{ c }},
  {%- endfor %}
  COUNT(*) AS nights
FROM core.nights AS n
GROUP BY CAST(DATE_TRUNC('MONTH', n.night) AS DATE), n.property_id
JINJA_END;
