MODEL (
  name mart.charts,
  kind FULL,
  owner charts,
  grain (country, week, place),
  audits (not_null(columns := (country, week)))
);

WITH weekly AS (
  SELECT
    d.country,
    CONCAT(EXTRACT(YEAROFWEEK FROM d.played_on), '-', LPAD(CAST(EXTRACT(WEEK FROM d.played_on) AS STRING), 2, '0')) AS week,
    d.track_id,
    SUM(d.plays) AS plays
  FROM core.plays_daily AS d
  GROUP BY 1, 2, 3
)
SELECT w.country, w.week, w.track_id, w.plays, w.place, w.plays_before
FROM (
  SELECT
    weekly.*,
    RANK() OVER (PARTITION BY weekly.country, weekly.week ORDER BY weekly.plays DESC) AS place,
    LAG(weekly.plays, 1, 0) OVER (PARTITION BY weekly.country, weekly.track_id ORDER BY weekly.week) AS plays_before
  FROM weekly
) AS w
WHERE w.place <= @chart_size
