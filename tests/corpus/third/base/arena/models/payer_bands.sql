MODEL (
  name arena.payer_bands,
  kind FULL,
  grain player_id
);

SELECT
  p.player_id,
  p.country,
  NTILE(4) OVER (ORDER BY p.gross DESC, p.player_id) AS quarter,
  b.label AS band
FROM arena.payers AS p
LEFT JOIN arena.bands AS b
  ON p.gross >= b.lower AND p.gross < b.upper
