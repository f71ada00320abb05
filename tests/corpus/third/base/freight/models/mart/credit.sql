MODEL (
  name freight_mart.credit,
  kind VIEW,
  grain customer_id
);

SELECT
  c.customer_id,
  c.name,
  c.country,
  c.credit_limit,
  COALESCE(SUM(x.amount_eur), 0) AS invoiced_eur,
  COALESCE(SUM(x.amount_eur), 0) > c.credit_limit AS over_limit
FROM freight_stg.customers AS c
LEFT JOIN freight_int.shipment_status AS s
  ON s.customer_id = c.customer_id
LEFT JOIN freight_int.charges_eur AS x
  ON x.shipment_no = s.shipment_no
GROUP BY
  c.customer_id,
  c.name,
  c.country,
  c.credit_limit
