MODEL (
  name web.topic_views,
  kind FULL,
  cron '@daily',
  grain (topic, day)
);

WITH topics AS (
  SELECT
    a.path,
    CAST(t.topic AS STRING) AS topic
  FROM web.articles AS a
  LATERAL VIEW EXPLODE(a.topics) t AS topic
)
SELECT
  topics.topic,
  d.day,
  SUM(d.views) AS views,
  COUNT(*) AS articles
FROM web.article_daily AS d
INNER JOIN topics
  ON d.path = topics.path
GROUP BY
  topics.topic,
  d.day
