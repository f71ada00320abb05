MODEL (
  name telco.first_topup,
  kind VIEW,
  grain subscriber_id
);

SELECT
  T.SUBSCRIBER_ID AS subscriber_id,
  MIN(T.PAID_ON) AS first_paid_on,
  MIN_BY(T.AMOUNT, T.TOPUP_ID) AS first_amount,
  MAX(T.AMOUNT) FILTER (WHERE T.CHANNEL = 'app') AS highest_in_app
FROM telco.topups AS T
GROUP BY
  T.SUBSCRIBER_ID
