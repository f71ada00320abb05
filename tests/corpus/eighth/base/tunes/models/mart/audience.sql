MODEL (
  name mart.audience,
  kind FULL,
  owner ads,
  grain user_id,
  audits (not_null(columns := (user_id)))
);

JINJA_QUERY_BEGIN;
SELECT
  u.user_id,
  u.country,
  {{ spend('a.cost') }} AS spent,
  SUM(a.clicks) / NULLIF(SUM(a.views), 0) AS click_rate,
  MAX(a.shown_at) AS last_shown
FROM stg.users AS u
LEFT JOIN stg.ads AS a ON a.user_id = u.user_id {# ads of today are not complete #}
  AND a.shown_at < DATE_TRUNC('DAY', CURRENT_TIMESTAMP())
WHERE u.tier <= 1
{% for market in var('markets') %}{% if loop.first %}  AND u.country IN ({% endif %}'{{ market }}'{% if not loop.last %}, {% else %}){% endif %}{% endfor %}

GROUP BY u.user_id, u.country
JINJA_END;
