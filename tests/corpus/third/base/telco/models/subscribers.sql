MODEL (
  name telco.subscribers,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key subscriber_id,
    when_matched (
      WHEN MATCHED AND source.updated_at > target.updated_at THEN UPDATE SET
        target.subscriber_hash = source.subscriber_hash,
        target.segment = source.segment,
        target.plan = source.plan,
        target.closed_at = source.closed_at,
        target.updated_at = source.updated_at
    )
  ),
  grain subscriber_id,
  audits (
    UNIQUE_VALUES(columns := (subscriber_id)),
    PLAN_KNOWN
  )
);

SELECT
  S.subscriber_id AS subscriber_id,
  SHA2(S.msisdn, 256) AS subscriber_hash,
  CASE WHEN S.segment IS NULL THEN 'none' ELSE S.segment END AS segment,
  S.plan AS plan,
  S.closed_at AS closed_at,
  S.updated_at AS updated_at
FROM crm.subscribers AS S
WHERE
  S.updated_at BETWEEN @start_ts AND @end_ts
QUALIFY
  ROW_NUMBER() OVER (PARTITION BY S.subscriber_id ORDER BY S.updated_at DESC, S.msisdn) = 1
