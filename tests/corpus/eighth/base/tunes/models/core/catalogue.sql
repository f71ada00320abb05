MODEL (
  name core.catalogue,
  kind CUSTOM (materialization 'append_new', materialization_properties ('key' = 'track_id')),
  owner catalogue,
  grain track_id,
  audits (not_null(columns := (track_id)))
);

SELECT t.track_id, t.title, t.isrc, t.label_id FROM stg.tracks AS t
