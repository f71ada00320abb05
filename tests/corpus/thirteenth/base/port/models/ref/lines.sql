MODEL (
  name ref.lines,
  kind SEED (
    path '../../seeds/lines.csv',
    csv_settings (
      delimiter = ';'
    )
  ),
  owner finance_data,
  columns (
    line_code STRING,
    line_name STRING,
    area STRING,
    credit_days INT
  ),
  grain line_code,
  audits (
    UNIQUE_VALUES(columns := (line_code))
  )
)
