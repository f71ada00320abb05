MODEL (
  name arena.match_lengths,
  kind FULL
);

SELECT
  week_start,
  COALESCE(solo, 0) AS solo_seconds,
  COALESCE(duo, 0) AS duo_seconds,
  COALESCE(squad, 0) AS squad_seconds
FROM (
  SELECT
    CAST(DATE_TRUNC('WEEK', m.started_at) AS DATE) AS week_start,
    m.mode,
    m.seconds
  FROM ingest.matches AS m
)
PIVOT(SUM(seconds) FOR mode IN ('solo' AS solo, 'duo' AS duo, 'squad' AS squad))
