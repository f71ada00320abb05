MODEL (
  name freight_mart.revenue_by_group,
  kind FULL,
  grain (group_id, month)
);

SELECT
  g.group_id,
  g.group_name,
  CAST(DATE_TRUNC('MONTH', c.invoiced_on) AS DATE) AS month,
  SUM(c.amount_eur) FILTER(WHERE c.is_revenue) AS revenue_eur,
  COUNT(DISTINCT c.invoice_no) AS invoices
FROM freight_int.charges_eur AS c
INNER JOIN freight_int.shipment_status AS s
  ON s.shipment_no = c.shipment_no
INNER JOIN freight_int.customer_groups AS g
  ON g.customer_id = s.customer_id
GROUP BY
  g.group_id,
  g.group_name,
  CAST(DATE_TRUNC('MONTH', c.invoiced_on) AS DATE)
