MODEL (
  name web.articles,
  kind FULL,
  cron '@daily',
  grain article_id,
  audits (
    NOT_NULL(columns := (article_id, path)),
    UNIQUE_VALUES(columns := (article_id))
  )
);

WITH versions AS (
  SELECT
    a.article_id,
    LOWER(a.path) AS path,
    a.title,
    a.section,
    a.author,
    a.topics,
    a.published_at,
    ROW_NUMBER() OVER (PARTITION BY a.article_id ORDER BY a.updated_at DESC) AS rn
  FROM cms.articles AS a
)
SELECT
  CAST(article_id AS INT) AS article_id,
  CAST(path AS STRING) AS path,
  CAST(title AS STRING) AS title,
  CAST(section AS STRING) AS section,
  CAST(author AS STRING) AS author,
  topics,
  CAST(published_at AS TIMESTAMP) AS published_at
FROM versions
WHERE
  rn = 1
