MODEL (
  name freight_mart.punctuality,
  kind VIEW,
  grain (service, destination)
);

SELECT
  s.service,
  s.destination,
  COUNT(*) AS arrived,
  AVG(IF(s.status = 'on time', 1.0, 0.0)) AS on_time_share,
  PERCENTILE(s.days_late, 0.9) AS p90_days_late
FROM freight_int.shipment_status AS s
WHERE
  s.status IN ('on time', 'late')
GROUP BY
  s.service,
  s.destination
