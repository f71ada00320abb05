MODEL (
  name ref.stations,
  kind SEED (path '../../seeds/stations.csv'),
  columns (station STRING, country STRING, region STRING, opened_on DATE),
  grain station
);
