MODEL (
  name ref.sites,
  kind SEED (
    path '../../seeds/sites.csv'
  ),
  columns (
    site_code STRING,
    site_name STRING,
    region STRING,
    beds INT
  ),
  grain site_code,
  audits (
    UNIQUE_VALUES(columns := (site_code)),
    NOT_NULL(columns := (site_code))
  )
)
