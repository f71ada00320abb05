AUDIT (
  name stays_have_guests,
  standalone TRUE
);

SELECT
  s.booking_id
FROM core.stays AS s
LEFT JOIN stg.guests AS g
  ON s.guest_id = g.guest_id
WHERE
  g.guest_id IS NULL
