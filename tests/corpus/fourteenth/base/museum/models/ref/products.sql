MODEL (
  name ref.products,
  kind SEED (
    path '../../seeds/products.csv'
  ),
  columns (
    product_code STRING,
    product_name STRING,
    category STRING,
    vat_rate_pct DECIMAL(5, 2),
    admits INT
  ),
  grain product_code,
  audits (
    UNIQUE_VALUES(columns := (product_code)),
    NOT_NULL(columns := (product_code))
  )
)
