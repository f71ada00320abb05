MODEL (
  name mart.movers,
  kind VIEW,
  owner charts,
  grain (country, week, track_id)
);

SELECT c.country, c.week, c.track_id, c.place, t.title
FROM mart.charts AS c
JOIN stg.tracks AS t ON t.track_id <=> c.track_id
