MODEL (
  name ref.items,
  kind SEED (
    path '../../seeds/items.csv'
  ),
  columns (
    item_code STRING,
    item_name STRING,
    item_group STRING,
    controlled BOOLEAN
  ),
  grain item_code,
  audits (UNIQUE_VALUES(columns := (item_code)))
);
