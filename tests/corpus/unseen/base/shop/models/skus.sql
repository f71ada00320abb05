MODEL (
  name shop.skus,
  kind SEED (
    path '../seeds/skus.csv'
  ),
  columns (
    sku STRING,
    title STRING,
    country STRING,
    listed_on DATE
  ),
  grain sku,
  audits (
    NOT_NULL(columns := (sku))
  )
);
