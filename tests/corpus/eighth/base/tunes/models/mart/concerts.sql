MODEL (
  name mart.concerts,
  kind FULL,
  owner charts,
  grain concert_id,
  audits (not_null(columns := (concert_id)))
);

SELECT
  c.concert_id,
  c.artist,
  TO_UTC_TIMESTAMP(c.starts_local, c.zone) AS starts_at,
  @HAVERSINE_DISTANCE(c.lat, c.lon, 52.52, 13.405, 'km') AS km_from_berlin,
  CASE c.city WHEN 'Köln' THEN 'west' WHEN 'Berlin' THEN 'east' ELSE 'other' END AS side
FROM raw.concerts AS c
WHERE c.artist IN (SELECT t.main_artist FROM stg.tracks AS t WHERE NOT t.main_artist IS NULL)
