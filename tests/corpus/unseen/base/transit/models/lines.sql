MODEL (
  name fare.lines,
  kind SEED (
    path '../seeds/lines.csv'
  ),
  columns (
    line_id STRING,
    line_name STRING,
    mode STRING,
    opened_on DATE
  ),
  grain line_id
);
