MODEL (
  name core.listeners,
  kind FULL,
  owner accounts,
  grain user_id,
  audits (not_null(columns := (user_id)))
);

SELECT
  @GENERATE_SURROGATE_KEY(u.user_id, u.country) AS listener_key,
  u.user_id,
  u.country,
  c.region,
  @SAFE_ADD(s.price, 0) AS price,
  s.state
FROM stg.users AS u
JOIN ref.countries AS c ON c.code = u.country
LEFT JOIN stg.subscriptions AS s ON s.user_id = u.user_id AND s.state = 'active'
