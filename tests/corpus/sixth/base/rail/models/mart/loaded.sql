MODEL (
  name mart.loaded,
  kind FULL,
  grain station,
  audits (not_null(columns := (station)))
);

SELECT s.station, s.region
FROM ref.stations AS s
WHERE EXISTS (SELECT 1 FROM core.loads AS l WHERE l.station = s.station AND region = 'south')
