MODEL (
  name core.stops,
  kind FULL,
  grain stop_id,
  audits (
    NOT_NULL(columns := (stop_id)),
    UNIQUE_VALUES(columns := (stop_id))
  )
);

WITH marked AS (
  SELECT
    s.stop_id,
    s.turbine,
    s.began_at,
    s.ended_at,
    s.reason,
    s.planned,
    CASE
      WHEN s.began_at <= LAG(s.ended_at) OVER (PARTITION BY s.turbine ORDER BY s.began_at, s.stop_id)
      THEN 0
      ELSE 1
    END AS starts
  FROM ops.stops AS s
  WHERE
    s.reason IS DISTINCT FROM 'test'
)
SELECT
  m.stop_id,
  m.turbine,
  m.began_at,
  m.ended_at,
  COALESCE(m.reason, 'none') AS reason,
  COALESCE(m.planned, FALSE) AS planned,
  TIMESTAMPDIFF(SECOND, m.began_at, m.ended_at) / 3600 AS hours,
  SUM(m.starts) OVER (PARTITION BY m.turbine ORDER BY m.began_at, m.stop_id) AS island
FROM marked AS m
