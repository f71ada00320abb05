MODEL (
  name core.authorizations,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key auth_id,
    lookback 1,
    when_matched (
      WHEN MATCHED AND source.updated_at > target.updated_at THEN UPDATE SET
        target.approved = source.approved,
        target.amount = source.amount,
        target.risk_score = source.risk_score,
        target.updated_at = source.updated_at
    )
  ),
  grain auth_id,
  audits (not_null(columns := (auth_id, updated_at)), unique_values(columns := (auth_id)))
);

SELECT
  a.auth_id,
  SHA2(CONCAT(a.card_token, '|', a.scheme), 256) AS card_key,
  a.merchant_id,
  LOWER(a.scheme) AS scheme,
  a.amount,
  a.currency,
  a.approved,
  a.risk_score,
  a.requested_at,
  a.updated_at
FROM raw.authorizations AS a
WHERE a.updated_at BETWEEN @start_ts AND @end_ts
QUALIFY ROW_NUMBER() OVER (PARTITION BY a.auth_id ORDER BY a.updated_at DESC) = 1
