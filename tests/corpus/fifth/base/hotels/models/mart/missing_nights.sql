MODEL (
  name mart.missing_nights,
  kind FULL
);

SELECT
  b.guest_id,
  b.nights
FROM stg.bookings AS b
EXCEPT ALL
SELECT
  s.guest_id,
  s.nights
FROM core.stays AS s
