MODEL (
  name telco.usage_by_type,
  kind FULL,
  grain (subscriber_hash, used_on)
);

SELECT
  U.SUBSCRIBER_HASH AS subscriber_hash,
  U.USED_ON AS used_on,
  @EACH(@usage_types, t -> SUM(CASE WHEN U.USAGE_TYPE = t THEN U.CHARGED ELSE 0 END) AS @{t}_charged),
  SUM(U.BYTES) / 1024 / 1024 AS megabytes,
  COUNT(*) AS records
FROM telco.usage AS U
GROUP BY
  U.SUBSCRIBER_HASH,
  U.USED_ON
