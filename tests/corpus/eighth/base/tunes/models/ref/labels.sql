MODEL (
  name ref.labels,
  kind SEED (path '../../seeds/labels.csv'),
  columns (label_id STRING, name STRING, barcode STRING, share DECIMAL(6, 4)),
  owner finance,
  grain label_id,
  audits (not_null(columns := (label_id)), match_regex_pattern_list(column := barcode, patterns := ('^[0-9]{13}$')))
);
