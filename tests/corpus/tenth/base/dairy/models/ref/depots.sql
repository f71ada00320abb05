MODEL (
  name ref.depots,
  kind SEED (path '$root/seeds/depots.csv', csv_settings (encoding = 'utf-8')),
  columns (depot STRING, town STRING, postcode STRING),
  owner collection,
  grain depot,
  audits (not_null(columns := (depot)))
);
