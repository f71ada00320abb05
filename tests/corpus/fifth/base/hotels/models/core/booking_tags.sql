MODEL (
  name core.booking_tags,
  kind FULL,
  grain (booking_id, tag),
  audits (
    NOT_NULL(columns := (booking_id))
  )
);

SELECT
  b.booking_id,
  t.tag
FROM stg.bookings AS b
LATERAL VIEW OUTER EXPLODE(b.tags) t AS tag
