MODEL (
  name stg.users,
  kind FULL,
  owner accounts,
  grain user_id,
  audits (not_null(columns := (user_id)), unique_values(columns := (user_id)), valid_mail_hash)
);

SELECT
  u.user_id,
  SHA2(CONCAT(LOWER(u.email), @salt), 256) AS mail_hash,
  u.country,
  FLOOR(u.birth_year / 10) * 10 AS decade,
  u.plan,
  u.signed_up,
  CASE WHEN u.plan = 'free' THEN 0 WHEN u.plan LIKE 'family%' THEN 2 WHEN u.plan IS NULL THEN -1 ELSE 1 END AS tier
FROM raw.users AS u
WHERE u.test_account IS NOT TRUE
