MODEL (
  name ref.hospitals,
  kind SEED (
    path '../../seeds/hospitals.csv'
  ),
  columns (
    hospital_code STRING,
    hospital_name STRING,
    region STRING
  ),
  grain hospital_code
)
