MODEL (
  name arena.retention,
  kind FULL,
  description 'Players of a day that came back exactly a week later.',
  grain event_day
);

WITH days AS (
  SELECT DISTINCT
    d.player_id,
    CAST(d.event_day AS DATE) AS day
  FROM arena.daily_players AS d
)
SELECT
  a.day AS event_day,
  COUNT(*) AS players,
  COUNT(b.player_id) AS returned,
  COUNT(b.player_id) / COUNT(*) AS day7
FROM days AS a
LEFT JOIN days AS b
  ON b.player_id = a.player_id AND b.day = a.day + INTERVAL 7 DAYS
GROUP BY
  a.day
