MODEL (
  name mart.phone_bookings,
  kind FULL,
  grain booking_id
);

SELECT
  b.booking_id,
  b.hotel_id,
  b.price
FROM stg.bookings AS b
WHERE
  b.channel RLIKE '^phone\\d{2}$'
