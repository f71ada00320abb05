MODEL (
  name core.places,
  kind FULL,
  grain station,
  audits (not_null(columns := (station)))
);

SELECT s.station, s.country, y.yard
FROM ref.stations AS s
LEFT JOIN stg.yards AS y ON y.station = s.station
