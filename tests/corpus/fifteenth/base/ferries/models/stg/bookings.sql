MODEL (
  name stg.bookings,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key booking_id
  ),
  table_format iceberg,
  grain booking_id,
  audits (
    UNIQUE_VALUES(columns := (booking_id)),
    NOT_NULL(columns := (booking_id, booked_at)),
    ACCEPTED_VALUES(column := status, is_in := ('open', 'paid', 'cancelled', 'expired'))
  )
);

SELECT
  b.booking_id,
  b.customer_id,
  LOWER(b.channel) AS channel,
  LOWER(b.status) AS status,
  b.booked_at,
  b.cancelled_at,
  b.updated_at
FROM web.bookings AS b
WHERE
  b.updated_at BETWEEN @start_ts AND @end_ts
