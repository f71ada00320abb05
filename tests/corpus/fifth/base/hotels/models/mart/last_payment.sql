MODEL (
  name mart.last_payment,
  kind FULL,
  grain booking_id
);

SELECT
  p.booking_id,
  p.payment_id,
  p.amount
FROM stg.payments AS p
WHERE
  NOT p.booking_id IS NULL
QUALIFY
  ROW_NUMBER() OVER (PARTITION BY p.booking_id ORDER BY p.paid_date DESC, p.payment_id DESC) = 1
