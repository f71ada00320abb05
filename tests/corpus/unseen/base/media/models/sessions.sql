MODEL (
  name web.sessions,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column session_date,
    batch_size 7,
    lookback 1
  ),
  cron '@daily',
  partitioned_by (session_date),
  grain (visitor_id, session_start)
);

WITH gaps AS (
  SELECT
    h.visitor_id,
    h.hit_id,
    h.hit_at,
    h.path,
    CASE
      WHEN TIMESTAMPDIFF(
        MINUTE,
        LAG(h.hit_at) OVER (PARTITION BY h.visitor_id, CAST(h.hit_at AS DATE) ORDER BY h.hit_at, h.hit_id),
        h.hit_at
      ) <= @VAR('session_gap_minutes')
      THEN 0
      ELSE 1
    END AS is_start
  FROM web.hits AS h
  WHERE
    CAST(h.hit_at AS DATE) BETWEEN @start_ds AND @end_ds
), numbered AS (
  SELECT
    g.visitor_id,
    g.hit_id,
    g.hit_at,
    g.path,
    SUM(g.is_start) OVER (PARTITION BY g.visitor_id, CAST(g.hit_at AS DATE) ORDER BY g.hit_at, g.hit_id) AS session_no
  FROM gaps AS g
)
SELECT
  n.visitor_id,
  CAST(n.hit_at AS DATE) AS session_date,
  n.session_no,
  MIN(n.hit_at) AS session_start,
  MAX(n.hit_at) AS session_end,
  COUNT(*) AS hits
FROM numbered AS n
GROUP BY
  n.visitor_id,
  CAST(n.hit_at AS DATE),
  n.session_no
