MODEL (
  name telco.topups,
  kind FULL,
  grain topup_id
);

SELECT
  T.TOPUP_ID AS topup_id,
  T.SUBSCRIBER_ID AS subscriber_id,
  T.AMOUNT AS amount,
  @NET_OF_TAX(T.AMOUNT) AS net_amount,
  CAST(FROM_UTC_TIMESTAMP(T.PAID_AT, 'Europe/Berlin') AS DATE) AS paid_on,
  T.CHANNEL AS channel
FROM crm.topups AS T
WHERE
  T.OK
