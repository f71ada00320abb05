MODEL (
  name mart.hotel_daily,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column booked_date
  ),
  partitioned_by booked_date,
  grain (hotel_id, booked_date),
  audits (
    NOT_NULL(columns := (hotel_id, booked_date)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (hotel_id, booked_date))
  )
);

SELECT
  b.hotel_id,
  b.booked_date,
  COUNT(*) AS bookings,
  SUM(@net(b.price)) AS net_price
FROM stg.bookings AS b
WHERE
  b.booked_date BETWEEN @start_date AND @end_date
GROUP BY
  b.hotel_id,
  b.booked_date
