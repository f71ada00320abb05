MODEL (
  name stg.sailings,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key sailing_id
  ),
  description 'One row a sailing, as last reported.',
  table_format iceberg,
  grain sailing_id,
  audits (
    UNIQUE_VALUES(columns := (sailing_id)),
    NOT_NULL(columns := (sailing_id, departs_at))
  )
);

WITH ranked AS (
  SELECT
    s.sailing_id,
    s.route_code,
    s.from_port,
    s.to_port,
    s.vessel_id,
    s.departs_at,
    s.departed_at,
    s.arrived_at,
    s.status,
    s.updated_at,
    ROW_NUMBER() OVER (PARTITION BY s.sailing_id ORDER BY s.updated_at DESC) AS version_rank
  FROM tms.sailings AS s
  WHERE
    s.updated_at BETWEEN @start_ts AND @end_ts
)
SELECT
  r.sailing_id,
  UPPER(TRIM(r.route_code)) AS route_code,
  r.from_port,
  r.to_port,
  r.vessel_id,
  r.departs_at,
  r.departed_at,
  r.arrived_at,
  LOWER(r.status) AS status,
  r.updated_at
FROM ranked AS r
WHERE
  r.version_rank = 1
