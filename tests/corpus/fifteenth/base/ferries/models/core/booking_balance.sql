MODEL (
  name core.booking_balance,
  kind FULL,
  description 'What was charged, paid and refunded for each booking, in the currency of the booking.',
  grain booking_id,
  audits (
    UNIQUE_VALUES(columns := (booking_id)),
    NOT_NULL(columns := (booking_id))
  )
);

WITH charged AS (
  SELECT
    t.booking_id,
    MAX(t.currency) AS currency,
    SUM(t.price) AS charged
  FROM stg.tickets AS t
  GROUP BY
    t.booking_id
), paid AS (
  SELECT
    p.booking_id,
    SUM(CASE WHEN p.direction = 'in' THEN p.amount ELSE 0 END) AS paid,
    SUM(CASE WHEN p.direction = 'out' THEN p.amount ELSE 0 END) AS refunded,
    MAX(p.paid_at) AS last_paid_at
  FROM stg.payments AS p
  GROUP BY
    p.booking_id
)
SELECT
  b.booking_id,
  b.customer_id,
  b.status,
  c.currency,
  COALESCE(c.charged, 0) AS charged,
  COALESCE(p.paid, 0) AS paid,
  COALESCE(p.refunded, 0) AS refunded,
  COALESCE(c.charged, 0) - COALESCE(p.paid, 0) + COALESCE(p.refunded, 0) AS open_amount,
  p.last_paid_at
FROM stg.bookings AS b
LEFT JOIN charged AS c
  ON b.booking_id = c.booking_id
LEFT JOIN paid AS p
  ON b.booking_id = p.booking_id
WHERE
  b.status <> 'expired'
