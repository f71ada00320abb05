MODEL (
  name fleet.zone_of,
  kind EMBEDDED
);

SELECT p.scooter_id, p.sent_at, z.zone_id, z.parking
FROM fleet.pings AS p
JOIN fleet.zones AS z
  ON z.city = p.city
  AND p.lat >= z.lat_min AND p.lat < z.lat_max
  AND p.lon >= z.lon_min AND p.lon < z.lon_max
