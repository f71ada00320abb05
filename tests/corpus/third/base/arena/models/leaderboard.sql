MODEL (
  name arena.leaderboard,
  kind VIEW
);

SELECT
  mp.mode,
  mp.player_id,
  SUM(mp.score) AS points,
  DENSE_RANK() OVER (PARTITION BY mp.mode ORDER BY SUM(mp.score) DESC) AS standing,
  CUME_DIST() OVER (PARTITION BY mp.mode ORDER BY SUM(mp.score)) AS percentile
FROM arena.match_players AS mp
GROUP BY
  mp.mode,
  mp.player_id
