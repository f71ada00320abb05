MODEL (
  name core.dwell,
  kind FULL,
  owner terminal_data,
  grain visit_id,
  description 'How long a container stood, from its two passages of the gate.',
  audits (
    UNIQUE_VALUES(columns := (visit_id)),
    NOT_NULL(columns := (visit_id))
  )
);

JINJA_QUERY_BEGIN;
SELECT
  g.visit_id,
  g.container_no,
  {% for side in ['IN', 'OUT'] %}
  MAX(CASE WHEN g.direction = '{{ side }}' THEN g.passed_at END) AS {{ side | lower }}_at,
  {% endfor %}
  COUNT(*) AS passages
FROM stg.gate AS g
GROUP BY
  g.visit_id,
  g.container_no
JINJA_END;
