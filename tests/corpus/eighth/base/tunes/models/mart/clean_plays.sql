MODEL (
  name mart.clean_plays,
  kind VIEW,
  owner streaming,
  grain play_id
);

SELECT p.play_id, p.user_id, p.track_id, p.played_on
FROM stg.plays AS p
WHERE @not_blocked(p.user_id)
