MODEL (
  name ship.service_level,
  kind FULL,
  cron '@daily',
  description 'Share of parcels on time, by service and country. Open parcels are not counted.',
  grain (service, country)
);

SELECT
  d.service,
  d.country,
  COUNT(*) AS delivered,
  AVG(CASE WHEN d.outcome = 'on time' THEN 1.0 ELSE 0.0 END) AS on_time_share
FROM ship.deliveries AS d
WHERE
  d.outcome <> 'open'
GROUP BY
  d.service,
  d.country
