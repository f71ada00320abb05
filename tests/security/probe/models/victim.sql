MODEL (
  name shop.victim,
  kind FULL
);

SELECT
  CAST(@loot() AS TEXT) AS loot,
  1 AS one
