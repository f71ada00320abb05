MODEL (
  name mart.margins,
  kind FULL,
  grain order_id,
  audits (not_null(columns := (order_id)))
);

SELECT
  o.order_id,
  c.area,
  o.qty * o.price AS gross,
  gross * 0.81 AS net,
  ROUND(gross - net, 2) AS tax
FROM stg.orders AS o
JOIN core.customers AS c ON c.customer_id = o.customer_id
