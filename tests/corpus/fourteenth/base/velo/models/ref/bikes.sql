MODEL (
  name ref.bikes,
  kind SEED (
    path '../../seeds/bikes.csv'
  ),
  columns (
    bike_code STRING,
    family STRING,
    list_price_eur DECIMAL(10, 2)
  ),
  grain bike_code,
  audits (
    UNIQUE_VALUES(columns := (bike_code)),
    NOT_NULL(columns := (bike_code))
  )
)
