MODEL (
  name freight_int.shipment_status,
  kind FULL,
  grain shipment_no
);

SELECT
  s.shipment_no,
  s.customer_id,
  s.container_no,
  s.origin,
  s.destination,
  s.service,
  s.weight_kg,
  s.booked_on,
  CASE
    WHEN s.cancelled THEN 'cancelled'
    WHEN s.ata IS NULL THEN 'under way'
    WHEN s.ata <= s.eta THEN 'on time'
    ELSE 'late'
  END AS status,
  EXTRACT(DAY FROM s.ata - s.eta) AS days_late
FROM freight_stg.shipments AS s
