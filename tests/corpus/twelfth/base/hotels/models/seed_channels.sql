MODEL (
  name ref.channels,
  kind SEED (path '../seeds/channels.csv'),
  columns (channel STRING, commission DECIMAL(5, 4)),
  grain channel,
  audits (UNIQUE_VALUES(columns := (channel)), NOT_NULL(columns := (channel)))
);
