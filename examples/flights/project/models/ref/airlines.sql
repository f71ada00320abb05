MODEL (
  name ref.airlines,
  kind SEED (
    path '../../seeds/airlines.csv'
  ),
  owner 'reference-data',
  description 'Carriers by their two-character IATA code.',
  columns (
    carrier STRING,
    airline_name STRING
  ),
  column_descriptions (
    carrier = 'IATA code of the carrier',
    airline_name = 'Registered name of the carrier'
  ),
  grain carrier,
  audits (
    NOT_NULL(columns := (carrier, airline_name)),
    UNIQUE_VALUES(columns := (
      carrier
    ))
  )
)
