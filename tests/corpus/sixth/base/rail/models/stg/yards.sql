MODEL (
  name stg.yards,
  kind VIEW,
  grain station,
  audits (not_null(columns := (station)))
);

SELECT y.station, y.yard FROM ops.yards AS y
