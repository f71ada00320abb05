MODEL (
  name core.plays_daily,
  kind INCREMENTAL_BY_TIME_RANGE (time_column played_on, batch_size 30),
  owner streaming,
  grain (track_id, country, played_on),
  audits (not_null(columns := (track_id, played_on)))
);

SELECT
  p.track_id,
  p.country,
  p.played_on,
  u.plan,
  COUNT(*) AS plays,
  COUNT(DISTINCT p.user_id) AS listeners,
  SUM(p.ms_played) AS ms_played
FROM stg.plays AS p
LEFT JOIN stg.users AS u ON u.user_id = p.user_id
WHERE p.played_on BETWEEN @start_ds AND @end_ds
GROUP BY p.track_id, p.country, p.played_on, u.plan
