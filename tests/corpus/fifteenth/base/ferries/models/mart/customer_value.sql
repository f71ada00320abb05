MODEL (
  name mart.customer_value,
  kind FULL,
  grain customer_id,
  audits (
    UNIQUE_VALUES(columns := (customer_id))
  )
);

WITH trips AS (
  SELECT
    b.customer_id,
    COUNT(DISTINCT b.booking_id) AS bookings,
    COUNT(DISTINCT CASE WHEN b.status = 'cancelled' THEN b.booking_id END) AS cancelled,
    SUM(CASE WHEN b.status <> 'cancelled' THEN r.revenue_eur ELSE 0 END) AS revenue_eur,
    MIN(b.booked_at) AS first_booked_at,
    MAX(b.booked_at) AS last_booked_at
  FROM stg.bookings AS b
  LEFT JOIN core.ticket_revenue AS r
    ON b.booking_id = r.booking_id
  WHERE
    b.customer_id IS NOT NULL
  GROUP BY
    b.customer_id
)
SELECT
  c.customer_id,
  c.country,
  COALESCE(t.bookings, 0) AS bookings,
  COALESCE(t.cancelled, 0) AS cancelled,
  COALESCE(t.revenue_eur, 0) AS revenue_eur,
  CASE
    WHEN COALESCE(t.revenue_eur, 0) >= 2000
    THEN 'gold'
    WHEN COALESCE(t.revenue_eur, 0) >= 500
    THEN 'silver'
    ELSE 'basic'
  END AS tier,
  t.first_booked_at,
  t.last_booked_at
FROM stg.customers AS c
LEFT JOIN trips AS t
  ON c.customer_id = t.customer_id
