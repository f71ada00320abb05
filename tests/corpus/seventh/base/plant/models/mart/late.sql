MODEL (
  name mart.late,
  kind FULL,
  grain order_id,
  audits (not_null(columns := (order_id)))
);

SELECT
  o.order_id,
  o.due_on,
  COALESCE(o.status, 'new') AS status,
  TO_DATE(CONCAT(YEAR(o.due_on), '-12-31')) AS year_end,
  MONTHS_BETWEEN(o.due_on, o.ordered_on) AS months,
  FROM_UTC_TIMESTAMP(o.updated_at, 'Europe/Berlin') AS updated_local,
  SIZE(o.tags) AS tag_count,
  ELEMENT_AT(o.tags, 1) AS first_tag,
  MOD(o.qty, 12) AS loose,
  REGEXP_EXTRACT(o.part_no, '([A-Z]+)-([0-9]+)', 1) AS series
FROM stg.orders AS o
WHERE NOT (o.status IN ('done', 'cancelled'))
