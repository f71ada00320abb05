MODEL (
  name core.stays,
  kind FULL,
  grain booking_id,
  references guest_id,
  audits (
    NOT_NULL(columns := (booking_id)),
    UNIQUE_VALUES(columns := (booking_id))
  )
);

SELECT
  b.booking_id,
  b.guest_id,
  b.hotel_id,
  h.city,
  g.country,
  b.channel,
  b.booked_date,
  b.checkin,
  b.nights,
  b.price
FROM stg.bookings AS b
LEFT JOIN stg.guests AS g
  ON b.guest_id = g.guest_id
  AND g.level <> 'test'
LEFT JOIN ref.hotels AS h
  ON b.hotel_id = h.hotel_id
WHERE
  b.nights >= @min_nights
