MODEL (
  name telco.topup_channels,
  kind FULL,
  grain (paid_on, channel)
);

SELECT
  T.PAID_ON AS paid_on,
  COALESCE(T.CHANNEL, 'unknown') AS channel,
  SUM(T.NET_AMOUNT) AS net_amount,
  COUNT(DISTINCT T.SUBSCRIBER_ID) AS payers
FROM telco.topups AS T
GROUP BY
  T.PAID_ON,
  COALESCE(T.CHANNEL, 'unknown')
