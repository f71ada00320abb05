MODEL (
  name stg.calls,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key call_id,
    merge_filter target.arrived_at >= CURRENT_DATE - INTERVAL 400 DAYS
  ),
  owner terminal_data,
  grain call_id,
  audits (
    UNIQUE_VALUES(columns := (call_id)),
    NOT_NULL(columns := (call_id, line_code))
  )
);

SELECT
  CAST(c.call_id AS BIGINT) AS call_id,
  c.imo,
  UPPER(c.line_code) AS line_code,
  c.berth,
  CAST(c.arrived_at AS TIMESTAMP) AS arrived_at,
  CAST(c.departed_at AS TIMESTAMP) AS departed_at,
  c.state,
  CAST(c.modified_at AS TIMESTAMP) AS modified_at
FROM tos.calls AS c
WHERE
  c.modified_at BETWEEN @start_ts AND @end_ts
