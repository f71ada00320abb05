MODEL (
  name telco.open_line,
  kind FULL,
  description 'The line of a phone number: the one that is open, or the one that was closed last.',
  grain msisdn_hash
);

SELECT
  SHA2(S.MSISDN, 256) AS msisdn_hash,
  S.SUBSCRIBER_ID AS subscriber_id,
  S.CLOSED_AT AS closed_at
FROM crm.subscribers AS S
QUALIFY
  ROW_NUMBER() OVER (PARTITION BY S.MSISDN ORDER BY S.CLOSED_AT DESC NULLS FIRST, S.SUBSCRIBER_ID DESC) = 1
