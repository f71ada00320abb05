MODEL (
  name web.top_articles,
  kind VIEW
);

WITH ranked AS (
  SELECT
    d.day,
    d.path,
    d.views,
    RANK() OVER (PARTITION BY d.day ORDER BY d.views DESC) AS place
  FROM web.article_daily AS d
)
SELECT
  r.day,
  r.place,
  r.path,
  a.title,
  a.author,
  r.views
FROM ranked AS r
LEFT JOIN web.articles AS a
  ON r.path = a.path
WHERE
  r.place <= 10
