MODEL (
  name core.booking_state,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key booking_id
  ),
  grain booking_id,
  audits (
    NOT_NULL(columns := (booking_id))
  )
);

SELECT
  CAST(b.booking_id AS BIGINT) AS booking_id,
  CAST(b.hotel_id AS STRING) AS hotel_id,
  CAST(b.status AS STRING) AS status,
  CAST(b.updated_at AS TIMESTAMP) AS updated_at
FROM raw.bookings AS b
WHERE
  b.updated_at BETWEEN @start_ts AND @end_ts
