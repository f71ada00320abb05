MODEL (
  name web.hits,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column hit_at,
    batch_size 48,
    lookback 3
  ),
  cron '@hourly',
  grain hit_id,
  audits (
    NOT_NULL(columns := (hit_id, hit_at)),
    UNIQUE_VALUES(columns := (hit_id))
  )
);

WITH numbered AS (
  SELECT
    h.hit_id,
    h.visitor_id,
    h.path,
    h.referrer,
    h.country,
    h.device,
    h.tags,
    h.seconds,
    h.hit_at,
    ROW_NUMBER() OVER (PARTITION BY h.hit_id ORDER BY h.received_at) AS rn
  FROM edge.hits AS h
  WHERE
    h.hit_at BETWEEN @start_ts AND @end_ts
)
SELECT
  CAST(hit_id AS STRING) AS hit_id,
  CAST(visitor_id AS STRING) AS visitor_id,
  LOWER(SPLIT_PART(path, '?', 1)) AS path,
  CAST(referrer AS STRING) AS referrer,
  COALESCE(UPPER(country), 'ZZ') AS country,
  CAST(device AS STRING) AS device,
  tags,
  CAST(seconds AS INT) AS seconds,
  CAST(hit_at AS TIMESTAMP) AS hit_at
FROM numbered
WHERE
  rn = 1 AND NOT visitor_id IN ('qa-1', 'qa-2')
