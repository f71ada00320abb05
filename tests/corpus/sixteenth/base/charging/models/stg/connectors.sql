MODEL (
  name stg.connectors,
  kind FULL,
  grain connector_id,
  audits (
    UNIQUE_VALUES(columns := (connector_id)),
    NOT_NULL(columns := (connector_id, station_id))
  )
);

SELECT
  c.connector_id,
  c.station_id,
  LOWER(c.plug) AS plug,
  c.max_kw
FROM ops.connectors AS c
