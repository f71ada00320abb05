MODEL (
  name @{brand}.bookings,
  kind VIEW,
  blueprints (
    (brand := luna, prefix := 'L'),
    (brand := sol, prefix := 'S')
  ),
  grain booking_id
);

SELECT
  s.booking_id,
  s.hotel_id,
  s.price
FROM core.stays AS s
WHERE
  STARTSWITH(s.hotel_id, @prefix)
