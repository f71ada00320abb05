MODEL (
  name mart.city_guests,
  kind FULL,
  grain city
);

SELECT
  s.city,
  COUNT(DISTINCT s.guest_id, s.country) AS guests,
  COUNT(1) AS stays,
  SUM(s.nights) AS nights
FROM core.stays AS s
GROUP BY
  s.city
