MODEL (
  name ref.airports,
  kind SEED (
    path '../../seeds/airports.csv'
  ),
  owner 'reference-data',
  description 'Airports by their three-character FAA code.',
  columns (
    airport STRING,
    airport_name STRING,
    latitude DOUBLE,
    longitude DOUBLE,
    altitude_feet INT,
    time_zone STRING
  ),
  column_descriptions (
    airport = 'FAA code of the airport',
    airport_name = 'Usual name of the airport',
    latitude = 'Degrees north',
    longitude = 'Degrees east',
    altitude_feet = 'Altitude above sea level in feet',
    time_zone = 'IANA time zone, empty where unknown'
  ),
  grain airport,
  audits (
    NOT_NULL(columns := (airport, airport_name)),
    UNIQUE_VALUES(columns := (
      airport
    ))
  )
)
