MODEL (
  name fare.stops,
  kind VIEW,
  grain (stop_id, valid_from)
);

SELECT
  CAST(s.stop_id AS STRING) AS stop_id,
  CAST(s.stop_name AS STRING) AS stop_name,
  CAST(s.zone AS STRING) AS zone,
  CAST(s.valid_from AS DATE) AS valid_from,
  CAST(s.valid_to AS DATE) AS valid_to
FROM plan.stops AS s
