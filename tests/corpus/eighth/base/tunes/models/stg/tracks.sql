MODEL (
  name stg.tracks,
  kind VIEW,
  owner catalogue,
  grain track_id,
  audits (not_null(columns := (track_id)), unique_values(columns := (track_id)))
);

SELECT
  t.track_id,
  INITCAP(t.title) AS title,
  UPPER(REPLACE(t.isrc, '-', '')) AS isrc,
  LEFT(t.isrc, 2) AS isrc_country,
  ARRAY_JOIN(t.artists, ', ', '?') AS artists,
  t.artists[0] AS main_artist,
  t.label_id,
  t.duration_ms,
  LPAD(CAST(t.duration_ms DIV 60000 AS STRING), 4, '0') AS minutes_text,
  t.updated_at
FROM raw.tracks AS t
