MODEL (
  name stg.bookings,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column booked_date,
    lookback 2,
    batch_size 30
  ),
  partitioned_by booked_date,
  signals (
    bookings_are_in(hours := 6)
  ),
  grain booking_id,
  audits (
    NOT_NULL(columns := (booking_id, booked_date)),
    UNIQUE_VALUES(columns := (booking_id)),
    price_is_sane
  )
);

SELECT
  CAST(b.booking_id AS BIGINT) AS booking_id,
  CAST(b.guest_id AS BIGINT) AS guest_id,
  CAST(b.hotel_id AS STRING) AS hotel_id,
  CAST(b.channel AS STRING) AS channel,
  CAST(b.booked_at AS DATE) AS booked_date,
  CAST(b.checkin AS DATE) AS checkin,
  CAST(b.nights_text AS INT) AS nights,
  CAST(b.price AS DECIMAL(10, 2)) AS price,
  CAST(b.status AS STRING) AS status,
  b.tags AS tags
FROM raw.bookings AS b
WHERE
  CAST(b.booked_at AS DATE) BETWEEN @start_date AND @end_date
