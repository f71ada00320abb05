MODEL (
  name mart.unpaid,
  kind VIEW,
  grain booking_id
);

SELECT
  s.booking_id,
  s.hotel_id,
  s.price
FROM core.stays AS s
LEFT JOIN stg.payments AS p
  ON p.booking_id = s.booking_id
WHERE
  p.payment_id IS NULL
  AND NOT COALESCE(s.channel, '') IN ('staff', 'test')
