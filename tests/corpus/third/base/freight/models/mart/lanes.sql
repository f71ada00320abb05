MODEL (
  name freight_mart.lanes,
  kind FULL,
  grain (origin, destination)
);

SELECT
  s.origin,
  s.destination,
  o.country AS origin_country,
  COUNT(*) AS shipments,
  SUM(s.weight_kg) AS weight_kg,
  SUM(s.weight_kg) * @VAR('co2_factor') AS co2_kg
FROM freight_int.shipment_status AS s
LEFT JOIN freight.ports AS o
  ON o.port = s.origin
WHERE
  s.status <> 'cancelled'
GROUP BY
  s.origin,
  s.destination,
  o.country
