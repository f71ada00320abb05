MODEL (
  name core.sessions,
  kind INCREMENTAL_BY_TIME_RANGE (time_column played_on, batch_size 30),
  owner streaming,
  grain (user_id, played_on, session_no),
  audits (not_null(columns := (user_id, played_on)))
);

WITH marked AS (
  SELECT
    p.user_id,
    p.played_on,
    p.started_at,
    p.ms_played,
    p.context_id,
    CASE
      WHEN LAG(p.started_at, 1) OVER (PARTITION BY p.user_id, p.played_on ORDER BY p.started_at, p.play_id) IS NULL THEN 1
      WHEN UNIX_TIMESTAMP(p.started_at) - UNIX_TIMESTAMP(LAG(p.started_at, 1) OVER (PARTITION BY p.user_id, p.played_on ORDER BY p.started_at, p.play_id)) > @gap_minutes * 60 THEN 1
      ELSE 0
    END AS is_new
  FROM stg.plays AS p
  WHERE p.played_on BETWEEN @start_ds AND @end_ds
), numbered AS (
  SELECT m.*, SUM(m.is_new) OVER (PARTITION BY m.user_id, m.played_on ORDER BY m.started_at ROWS UNBOUNDED PRECEDING) AS session_no
  FROM marked AS m
)
SELECT
  n.user_id,
  n.played_on,
  n.session_no,
  MIN(n.started_at) AS started_at,
  DATE_FORMAT(MIN(n.started_at), 'yyyy-MM-dd HH:mm') AS started_text,
  SUM(n.ms_played) AS ms_played,
  SORT_ARRAY(COLLECT_SET(n.context_id)) AS contexts
FROM numbered AS n
GROUP BY n.user_id, n.played_on, n.session_no
