MODEL (
  name web.section_daily,
  kind FULL,
  cron '@daily',
  grain (section, day)
);

SELECT
  COALESCE(a.section, 'none') AS section,
  d.day,
  SUM(d.views) AS views,
  SUM(d.engaged_views) AS engaged_views,
  SUM(d.seconds) AS seconds
FROM web.article_daily AS d
LEFT JOIN web.articles AS a
  ON d.path = a.path
GROUP BY
  COALESCE(a.section, 'none'),
  d.day
