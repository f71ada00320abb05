MODEL (
  name telco.revenue_plan,
  kind FULL
);

SELECT
  S.PLAN AS plan,
  SUM(U.CHARGED) AS charged,
  SUM(U.CHARGED) / NULLIF(COUNT(DISTINCT S.SUBSCRIBER_ID), 0) AS charged_per_subscriber
FROM telco.usage AS U
LEFT JOIN telco.subscribers AS S
  ON S.SUBSCRIBER_HASH = U.SUBSCRIBER_HASH
GROUP BY
  S.PLAN
