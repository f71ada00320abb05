MODEL (
  name mart.delays,
  kind FULL,
  grain zone,
  audits (not_null(columns := (zone)))
);

SELECT UPPER(p.country) AS zone, COUNT(*) AS stations
FROM core.places AS p
GROUP BY zone
