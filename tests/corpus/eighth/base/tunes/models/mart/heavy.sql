MODEL (
  name mart.heavy,
  kind INCREMENTAL_BY_TIME_RANGE (time_column played_on, batch_size 30),
  depends_on (core.listeners),
  owner streaming,
  grain (user_id, played_on),
  audits (not_null(columns := (user_id, played_on)))
);

CACHE TABLE paying AS SELECT user_id FROM core.listeners WHERE price > 0;

SELECT s.user_id, s.played_on, SUM(s.ms_played) / 3600000 AS hours
FROM core.sessions AS s
WHERE s.played_on BETWEEN @start_ds AND @end_ds
  AND s.user_id IN (SELECT p.user_id FROM paying AS p)
GROUP BY s.user_id, s.played_on;

UNCACHE TABLE IF EXISTS paying;
