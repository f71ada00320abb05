MODEL (
  name core.nights,
  kind FULL,
  grain (reservation_id, night),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (reservation_id, night)),
    NOT_NULL(columns := (reservation_id, night))
  )
);

SELECT
  r.reservation_id,
  r.property_id,
  r.room_type,
  r.channel,
  r.guest_id,
  n.night,
  r.nightly_price
FROM stg.reservations AS r
LATERAL VIEW EXPLODE(SEQUENCE(r.check_in, DATE_SUB(r.check_out, 1), INTERVAL 1 DAY)) n AS night
WHERE r.status IN ('BOOKED', 'IN_HOUSE', 'DEPARTED')
  AND r.check_out > r.check_in
