MODEL (
  name mart.order_book,
  kind FULL,
  grain order_id,
  audits (not_null(columns := (order_id)))
);

SELECT order_id, name, qty
FROM stg.orders
NATURAL JOIN core.customers
