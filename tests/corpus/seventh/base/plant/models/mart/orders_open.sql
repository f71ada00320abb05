MODEL (
  name mart.orders_open,
  kind FULL,
  grain order_id,
  audits (not_null(columns := (order_id)))
);

JINJA_QUERY_BEGIN;
SELECT
  o.order_id,
  o.customer_id,
  {{ net_price('o.price') }} AS price,
  o.qty,
  o.due_on
FROM stg.orders AS o
WHERE 1 = 1
{% for status in var('closed_statuses') %}
  AND o.status <> '{{ status }}'
{% endfor %}
JINJA_END;
