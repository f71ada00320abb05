MODEL (
  name core.order_tags,
  kind FULL,
  grain (order_id, tag),
  audits (not_null(columns := (order_id)))
);

SELECT DISTINCT o.order_id, tag
FROM stg.orders AS o
LATERAL VIEW EXPLODE(o.tags) t AS tag
