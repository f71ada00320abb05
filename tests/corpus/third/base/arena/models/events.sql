MODEL (
  name arena.events,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column (event_day, 'yyyy-MM-dd'),
    batch_size 7
  ),
  partitioned_by event_day,
  grain event_id
);

SELECT
  e.event_id,
  e.player_id,
  e.name,
  GET_JSON_OBJECT(e.payload, '$.level') AS level,
  CAST(GET_JSON_OBJECT(e.payload, '$.gold') AS INT) AS gold,
  FROM_JSON(e.payload, 'map STRING, platform STRING').platform AS platform,
  e.happened_at,
  DATE_FORMAT(e.happened_at, 'yyyy-MM-dd') AS event_day
FROM ingest.events AS e
WHERE
  e.happened_at BETWEEN @start_ts AND @end_ts
  AND NOT e.player_id IS NULL
QUALIFY
  ROW_NUMBER() OVER (PARTITION BY e.event_id ORDER BY e.received_at) = 1
