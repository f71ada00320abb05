MODEL (
  name arena.match_players,
  kind FULL,
  description 'A row for each player of a match; place is 1 for the first of the list.',
  grain (match_id, place)
);

SELECT
  m.match_id,
  m.mode,
  p.pos + 1 AS place,
  p.player_id,
  m.scores[p.pos] AS score,
  m.started_at,
  m.seconds
FROM ingest.matches AS m
LATERAL VIEW POSEXPLODE(m.players) p AS pos, player_id
