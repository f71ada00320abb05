MODEL (
  name ref.stations,
  kind SEED (
    path '../../seeds/stations.csv'
  ),
  columns (
    station STRING,
    line STRING,
    seq INT,
    takt_seconds INT
  ),
  grain station,
  audits (
    UNIQUE_VALUES(columns := (station)),
    NOT_NULL(columns := (station, line))
  )
)
