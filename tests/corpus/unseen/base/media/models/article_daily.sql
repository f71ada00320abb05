MODEL (
  name web.article_daily,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column day,
    batch_size 14,
    lookback 1
  ),
  cron '@daily',
  partitioned_by (day),
  grain (path, day),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (path, day))
  )
);

SELECT
  h.path,
  CAST(h.hit_at AS DATE) AS day,
  COUNT(*) AS views,
  COUNT(DISTINCT h.visitor_id) AS visitors,
  SUM(COALESCE(h.seconds, 0)) AS seconds,
  COUNT(CASE WHEN h.seconds >= 30 THEN 1 END) AS engaged_views
FROM web.hits AS h
WHERE
  CAST(h.hit_at AS DATE) BETWEEN @start_ds AND @end_ds
GROUP BY
  h.path,
  CAST(h.hit_at AS DATE)
