MODEL (
  name mart.newest_ads,
  kind FULL,
  owner ads,
  grain user_id,
  audits (not_null(columns := (user_id)), unique_values(columns := (user_id)))
);

WITH newest AS (
  @DEDUPLICATE(stg.ads, [user_id], ['shown_at DESC', 'ad_id DESC'])
)
SELECT n.user_id, n.ad_id, n.shown_at, n.cost FROM newest AS n
