MODEL (
  name core.track_history,
  kind SCD_TYPE_2_BY_TIME (unique_key track_id, updated_at_name updated_at, invalidate_hard_deletes true),
  table_format iceberg,
  owner catalogue,
  grain (track_id, valid_from),
  audits (not_null(columns := (track_id)))
);

SELECT t.track_id, t.title, t.label_id, t.updated_at FROM raw.tracks AS t
