MODEL (
  name mart.guest_value,
  kind FULL,
  grain (guest_id, booking_id)
);

SELECT
  s.guest_id,
  s.booking_id,
  s.checkin,
  SUM(s.price) OVER (
    PARTITION BY s.guest_id
    ORDER BY s.checkin
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS value_so_far
FROM core.stays AS s
