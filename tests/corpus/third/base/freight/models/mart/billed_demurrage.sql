MODEL (
  name freight_mart.billed_demurrage,
  kind FULL
);

SELECT DISTINCT
  s.container_no
FROM freight_int.charges_eur AS c
LEFT JOIN freight_int.shipment_status AS s
  ON s.shipment_no = c.shipment_no
WHERE
  c.charge_kind = 'demurrage'
