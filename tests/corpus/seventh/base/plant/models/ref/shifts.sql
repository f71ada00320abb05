MODEL (
  name ref.shifts,
  kind SEED (path '../../seeds/shifts.csv'),
  columns (shift STRING, starts_hour INT, ends_hour INT, factor DECIMAL(4, 2)),
  grain shift
);
