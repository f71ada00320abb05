MODEL (
  name stg.sessions,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key session_id
  ),
  description 'One row a session, as last reported.',
  table_format iceberg,
  grain session_id,
  audits (
    UNIQUE_VALUES(columns := (session_id)),
    NOT_NULL(columns := (session_id, connector_id, started_at))
  )
);

WITH ranked AS (
  SELECT
    s.session_id,
    s.connector_id,
    s.card_id,
    s.started_at,
    s.stopped_at,
    s.energy_wh,
    s.stop_reason,
    s.updated_at,
    ROW_NUMBER() OVER (PARTITION BY s.session_id ORDER BY s.updated_at DESC) AS version_rank
  FROM ocpp.sessions AS s
  WHERE
    s.updated_at BETWEEN @start_ts AND @end_ts
)
SELECT
  r.session_id,
  r.connector_id,
  UPPER(TRIM(r.card_id)) AS card_id,
  r.started_at,
  r.stopped_at,
  r.energy_wh,
  LOWER(r.stop_reason) AS stop_reason,
  r.updated_at
FROM ranked AS r
WHERE
  r.version_rank = 1
