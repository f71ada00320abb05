MODEL (
  name ship.depots,
  kind FULL,
  cron '@daily',
  grain depot_id,
  audits (
    NOT_NULL(columns := (depot_id)),
    UNIQUE_VALUES(columns := (depot_id))
  )
);

SELECT
  CAST(d.depot_id AS STRING) AS depot_id,
  CAST(d.depot_name AS STRING) AS depot_name,
  CAST(d.region AS STRING) AS region,
  COALESCE(d.time_zone, 'UTC') AS time_zone,
  CAST(d.opened_on AS DATE) AS opened_on
FROM tms.depots AS d
