MODEL (
  name arena.daily_players,
  kind FULL,
  grain (player_id, event_day)
);

SELECT
  e.player_id,
  e.event_day,
  COUNT(*) AS events,
  SUM(e.gold) AS gold,
  MAX(CAST(e.level AS INT)) AS highest_level,
  BOOL_OR(e.name = 'purchase') AS paid,
  SORT_ARRAY(COLLECT_SET(e.platform)) AS platforms
FROM arena.events AS e
GROUP BY
  e.player_id,
  e.event_day
