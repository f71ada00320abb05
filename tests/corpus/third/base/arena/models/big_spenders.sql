MODEL (
  name arena.big_spenders,
  kind VIEW
);

SELECT
  o.player_id,
  MAX(o.country) AS country,
  SUM(o.gross) AS gross,
  COUNT(*) AS orders
FROM shop.orders AS o
WHERE
  o.country <> 'KR'
GROUP BY
  o.player_id
HAVING
  SUM(o.gross) >= 40
