MODEL (
  name mart.port_traffic_@land,
  kind VIEW,
  blueprints (
    (land := de, code := 'DE'),
    (land := se, code := 'SE'),
    (land := fi, code := 'FI')
  ),
  description 'Departures of a country, for its harbour authority.'
);

SELECT
  p.port_code,
  p.port_name,
  CAST(s.departs_at AS DATE) AS departs_on,
  COUNT(*) AS departures
FROM stg.sailings AS s
INNER JOIN ref.ports AS p
  ON s.from_port = p.port_code
WHERE
  p.country = @code AND s.status <> 'cancelled'
GROUP BY
  p.port_code,
  p.port_name,
  CAST(s.departs_at AS DATE)
